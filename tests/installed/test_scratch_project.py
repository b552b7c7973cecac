"""A project with a ``harness`` and an ``engines`` of its own, and gcbench installed beside them."""

import textwrap
from pathlib import Path

import pytest
from environments import Environment, make_environment

FILES = {
    "harness/__init__.py": "",
    "harness/runner.py": "OF = 'the project'\n",
    "engines/__init__.py": "from harness.runner import OF\n",
    "engines/kernel.py": "def step():\n    return [{i} for i in range(8)]\n",
    "tests/test_step.py": """\
        import importlib.util
        import sys

        import engines.kernel
        import harness.runner
        import pytest


        def test_a_step_keeps_to_its_budget(gc_budget):
            assert (engines.OF, harness.runner.OF) == ("the project", "the project")
            cost = gc_budget(engines.kernel.step, 8, survivors=1.2, peak=2, bytecodes=100)
            assert cost.survivors == 9


        def test_a_step_over_its_budget_fails(gc_budget):
            with pytest.raises(AssertionError, match="raise the budget"):
                gc_budget(engines.kernel.step, 8, survivors=1)


        def test_nothing_of_gcbench_is_importable_but_itself():
            for name in ("workloads", "dashboards", "torch", "numpy", "click"):
                assert importlib.util.find_spec(name) is None
            assert not [name for name in sys.modules if name.startswith("gcbench.packages")]
        """,
}

INSTALLABLE = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "scratch"
version = "0"

[tool.setuptools]
packages = ["engines", "harness"]
"""

WAYS = {
    "a root conftest.py": ({"conftest.py": ""}, []),
    "pythonpath": ({"pytest.ini": "[pytest]\npythonpath = .\n"}, []),
    "importlib mode": ({"pytest.ini": "[pytest]\npythonpath = .\n"}, ["--import-mode=importlib"]),
    "importlib mode, python -m pytest": ({}, ["--import-mode=importlib"]),
    "the project installed editable": ({"pyproject.toml": INSTALLABLE}, []),
}


@pytest.fixture(scope="module", params=["wheel", pytest.param("editable", marks=pytest.mark.slow)])
def environment(request, clone, wheel, tmp_path_factory) -> Environment:
    """Pytest and gcbench, by a wheel or editable, and nothing else."""
    made = make_environment(tmp_path_factory.mktemp("environment") / "env")
    made.install(*([str(wheel)] if request.param == "wheel" else ["--editable", str(clone)]))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_projects_own_packages_are_imported_and_the_plug_in_works(environment, way, tmp_path):
    files, options = WAYS[way]
    for name, text in (FILES | files).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    if "pyproject.toml" in files:
        environment.install("--editable", str(tmp_path))
    started = ["-m", "pytest"] if "-m pytest" in way else [str(_pytest_script(tmp_path))]
    done = environment.run(*started, "-q", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def _pytest_script(folder: Path) -> Path:
    """As the command ``pytest``: only its own folder is put on the path, not the working one."""
    script = folder / "bin" / "pytest"
    script.parent.mkdir()
    script.write_text("import sys, pytest\nsys.exit(pytest.main())\n")
    return script


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["the clone", "its parent"])
def test_gcbench_is_imported_from_the_parent_of_a_clone_of_that_name(environment, clone, folder):
    cwd = clone if folder == "the clone" else clone.parent
    script = "import gcbench, gcbench.budget; print(gcbench.__file__, gcbench.budget.__file__)"
    said = environment.run("-c", script, cwd=cwd)
    assert [Path(file).name for file in said.stdout.split()] == ["__init__.py", "budget.py"]
    asked = environment.run("-m", "gcbench", "--help", cwd=cwd)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr == (
        f"gcbench: {environment.python} has no click, which measuring needs; run "
        f"{environment.python} -m pip install 'gcbench[bench]'\n"
    )
