"""Trials of an installed gcbench: each of its interpreters finds the packages inside the wheel."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from environments import Environment, make_environment

SHORT = [
    "--device",
    "null",
    "--num-requests",
    "32",
    "--batch-size",
    "16",
    "--output-lens",
    "8",
    "--heap-objects",
    "0",
]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Environment:
    """All that measuring needs, and the wheel."""
    made = make_environment(tmp_path_factory.mktemp("full") / "env", with_everything=True)
    made.install("--ignore-installed", str(wheel))
    return made


def packages(environment: Environment) -> Path:
    return environment.site_packages / "gcbench" / "packages"


@pytest.mark.slow
@pytest.mark.landing
def test_a_wheel_compares_in_an_empty_folder(installed, tmp_path):
    """In process and across a worker process; the code is the wheel's, not this checkout's."""
    asked = [
        str(installed.folder / "bin" / "gcbench"),
        "compare",
        *SHORT,
        "--representation",
        "list_of_lists",
        "--delivery",
        "per_request",
        "--gc",
        "default",
        "--worker",
        "in-process,process",
        "--rounds",
        "1",
        "--output",
        "out",
        "--json",
        "-",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["cells"]) == 2
    assert all(cell["samples"] for cell in result["cells"])
    roots = {
        path.read_text().split('"code_root":"')[1].split('"')[0]
        for path in tmp_path.glob("out/**/trials/*.json")
    }
    assert roots == {str(packages(installed))}


@pytest.mark.slow
def test_arrivals_come_from_a_process_of_the_wheel_too(installed, tmp_path):
    asked = [
        "run",
        *SHORT,
        "--workload",
        "burst",
        "--device",
        "modelled",
        "--worker",
        "process",
        "--json",
        "-",
    ]
    done = installed.run("-m", "gcbench", *asked, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr  # a busy machine may spoil a modelled wait
    assert json.loads(done.stdout)["trial"]["code_root"] == str(packages(installed))


@pytest.mark.slow
def test_an_interpreter_without_gcbench_finds_all_of_it_by_one_folder(wheel, tmp_path):
    """As vLLM's environments, which have only a path: gcbench is inside the folder too."""
    installed = make_environment(tmp_path / "installed")
    installed.install(str(wheel))
    bare = make_environment(tmp_path / "bare")
    folder = packages(installed)
    script = """
import json
from importlib.metadata import entry_points
import dashboards, engines, harness, workloads
import gcbench.opcodes
groups = ("vllm.platform_plugins", "vllm.general_plugins")
values = [point.value for group in groups for point in entry_points(group=group)]
files = [module.__file__ for module in (dashboards, engines, harness, workloads, gcbench.opcodes)]
print(json.dumps([values, files]))
"""
    path = [str(folder), str(folder / "engines" / "vllm" / "entry_points")]
    done = subprocess.run(
        [bare.python, "-P", "-c", script],
        env={"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values, files = json.loads(done.stdout)
    assert values == ["engines.vllm.plugin:platform", "engines.vllm.plugin:general"]
    names = ("dashboards", "engines", "harness", "workloads")
    assert files == [
        *(str(folder / name / "__init__.py") for name in names),
        str(folder.parent / "opcodes.py"),
    ]
