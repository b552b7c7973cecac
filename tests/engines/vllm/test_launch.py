"""Where a trial with vLLM runs, tried by interpreters that are started as it says."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engines.protocol import Launch
from engines.vllm.launch import launch_vllm
from engines.vllm.settings import HOST_PATH_VARIABLE
from harness.experiment.local_executor import LocalExecutor

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("cache")

LOADS_PLUGINS = """
import json, sys
from importlib.metadata import entry_points
groups = ["vllm.platform_plugins", "vllm.general_plugins"]
points = [point for group in groups for point in entry_points(group=group)]
import engines, vllm
says = points[0].load()()
print(json.dumps([[p.name for p in points], says, engines.__file__, vllm.__file__]))
"""


@pytest.fixture(autouse=True)
def no_path_of_ours(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A source tree that shadows a package of gcbench."""
    top = tmp_path / "checkout"
    for package in ("vllm", "engines"):
        (top / package).mkdir(parents=True)
        (top / package / "__init__.py").touch()
    return top


def path_of(launched: Launch) -> list[str]:
    return launched.environment["PYTHONPATH"].split(os.pathsep)


def test_a_releases_files_come_first_then_gcbench_then_the_users(base, checkout, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"/one{os.pathsep}/two")
    launched = launch_vllm("", str(checkout))
    assert launched.interpreter == str(base)
    first, code_root, entry_points, *users = path_of(launched)
    assert (first, code_root, users) == (str(checkout), str(ROOT), ["/one", "/two"])
    assert list(Path(entry_points).glob("*.dist-info/entry_points.txt"))
    assert path_of(launch_vllm("", "")) == [code_root, entry_points, "/one", "/two"]


def test_an_interpreter_that_is_named_wins(base, checkout):
    assert launch_vllm(sys.executable, "").interpreter == sys.executable
    assert launch_vllm(sys.executable, str(checkout)).interpreter == sys.executable


def test_no_vllm_is_a_sentence_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"no vLLM here: run `make vllm`.*--axis python"):
        launch_vllm("", "")


def test_a_vllm_that_is_installed_here_is_taken_unless_a_release_is_asked_for(
    base, checkout, monkeypatch
):
    monkeypatch.syspath_prepend(checkout)
    importlib.invalidate_caches()
    assert launch_vllm("", "").interpreter == sys.executable
    assert launch_vllm("", str(checkout)).interpreter == str(base)


def test_a_folder_of_that_name_is_no_vllm(base, monkeypatch, tmp_path):
    (tmp_path / "vllm").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert launch_vllm("", "").interpreter == str(base)


@pytest.mark.parametrize("release", ["0.11.0", "nowhere/vllm", "0.1", "latest"])
def test_a_release_that_is_not_there_is_a_sentence(base, release):
    with pytest.raises(ValueError, match=release) as raised:
        launch_vllm("", release)
    assert "\n" not in str(raised.value)


def run(launched: Launch, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [launched.interpreter, "-P", "-c", code],
        env=os.environ | launched.environment | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "says"),
    [({}, None), ({HOST_PATH_VARIABLE: "1"}, "engines.vllm.platform.HostPathPlatform")],
)
def test_vllm_finds_the_plug_ins_by_its_own_means(tmp_path, environment, says):
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").touch()
    done = run(launch_vllm(sys.executable, str(tmp_path)), LOADS_PLUGINS, **environment)
    assert done.returncode == 0, done.stderr
    names, said, engines, vllm = json.loads(done.stdout)
    assert names == ["gcbench", "gcbench"]
    assert said == says
    assert engines == str(ROOT / "engines" / "__init__.py")
    assert vllm == str(tmp_path / "vllm" / "__init__.py")


def test_a_trials_last_line_is_not_the_resource_trackers():
    done = run(
        launch_vllm(sys.executable, ""),
        # In lines of their own: from 3.13 on a warning shows the line that it comes from.
        "import warnings\nwarnings.warn('resource_tracker: 1 leaked')\nwarnings.warn('another')",
    )
    assert "leaked" not in done.stderr
    assert "another" in done.stderr


def test_an_interpreter_without_vllm_fails_in_a_line(tmp_path):
    from vllm_trials import cell, schedule, trial

    asked = [
        trial(schedule([2], [3]), tmp_path, cell(engine, device=device, python=sys.executable))
        for engine, device in (("vllm-hostpath", "null"), ("vllm", "cpu"))
    ]
    for outcome in LocalExecutor(600).run(asked):
        assert outcome.kind == "crashed"
        assert "ModuleNotFoundError: No module named 'vllm' (" in outcome.reason
