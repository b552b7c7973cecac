"""Where gcbench is installed the probe starts without PYTHONPATH, and only when it is asked to."""

import subprocess

import pytest
from environments import Environment, make_environment

from harness.probed.ring import Ring

SCRIPT = "import gc, sys; print(len(gc.callbacks), sum('gcbench' in name for name in sys.modules))"


@pytest.fixture(scope="module", params=["wheel", "editable"])
def environment(request, clone, wheel, tmp_path_factory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("environment") / "env")
    made.install(*([str(wheel)] if request.param == "wheel" else ["--editable", str(clone)]))
    return made


def run(environment: Environment, *options: str, **variables: str) -> str:
    command = [environment.python, *options, "-c", SCRIPT]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.slow
def test_an_isolated_interpreter_is_probed_and_one_that_is_not_asked_is_left_alone(
    environment, tmp_path
):
    assert run(environment, "-I") == "0 0"
    assert run(environment, "-I", GCBENCH_PROBE=str(tmp_path / "gone")).startswith("0 ")
    assert run(environment, "-S", GCBENCH_PROBE=str(tmp_path)) == "0 0"
    assert run(environment, "-I", GCBENCH_PROBE=str(tmp_path)).startswith("2 ")
    (path,) = tmp_path.iterdir()
    assert Ring(path).command[1] == "-I"


@pytest.mark.slow
def test_it_starts_once_where_pythonpath_would_start_it_too(environment, tmp_path):
    start_up = environment.run(
        "-c", "import gcbench.probe as p, os; print(os.path.dirname(p.__file__))", cwd=tmp_path
    )
    rings = tmp_path / "rings"
    rings.mkdir()
    path = f"{start_up.stdout.strip()}/start_up"
    said = run(environment, GCBENCH_PROBE=str(rings), PYTHONPATH=path)
    assert said.startswith("2 ")
    assert len(list(rings.iterdir())) == 1


@pytest.mark.slow
def test_the_start_file_of_newer_pythons_names_what_is_there(environment, tmp_path):
    (line,) = (environment.site_packages / "gcbench.start").read_text().splitlines()
    module, _, name = line.partition(":")
    done = environment.run("-c", f"from {module} import {name}; {name}()", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
