"""What holds for every test."""

import gc
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from examples import register
from hypothesis import given
from hypothesis import strategies as st

pytest_plugins = ["pytester"]

register()

# There are more processes of tests than cores: threads of the numeric libraries would wait, at
# work, for cores that other tests have. Torch and NumPy read this when they are imported.
os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
)
# Tests start hundreds of interpreters, and each would compile our modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What tests time is of no interest to anybody: they wait for no measurement, nor one for them.
os.environ["GCBENCH_LEASE"] = ""

_BEGAN = time.monotonic()
_HERE = Path(__file__).parent

# Interpreters that tests start find our packages as this one does, by pyproject's `pythonpath`.
_INHERITED = os.environ.get("PYTHONPATH", "")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_HERE.parent), _INHERITED]))


TIERS = {"slow", "landing", "flaky", "gpu"}
"""The marks by which tests are chosen."""

CHROMIUM = Path("/usr/bin/chromium")

_LONGEST = (
    "test_torture.py",
    "test_modes.py",  # a process of its own each
    "test_real_host_path.py",
    "test_browser.py",
    "test_asv_road.py",
    "test_ray.py",
    "test_gpu_check.py",
    "test_cli_releases.py",
    "test_nightly_kill.py",
    "test_local_executor.py",
    "test_exact.py",
    "test_window.py",
    "test_gate.py",
    "test_site.py",
    "test_cli_gate.py",
    "test_releases.py",
    "test_text.py",
    "test_worker_process.py",
    "test_scratch_project.py",
    "test_pytest_plugin.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--start-within",
        type=float,
        metavar="SECONDS",
        help="take files as they are named and start no test later: the others are skipped by file",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    seconds = item.config.getoption("start_within")
    if seconds is not None and time.monotonic() - _BEGAN > seconds:
        pytest.skip(f"{item.path.name} is left to make deep: {seconds:g} s were over")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Of the files that a change touches, none may have a test of the kind that was asked for."""
    none_chosen = exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if none_chosen and session.config.getoption("start_within") is not None:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: some tests wait, for another process or for time to pass."""
    from harness.machine.describe import cores_usable  # in the process that starts the others

    return cores_usable() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadscope`` a process is given a whole folder.

    Where there are as many folders as processes, none is sent anything while it works: what the
    thread that listens would make of it is an object too many for a test that counts.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFolder(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return str(Path(nodeid.partition("::")[0]).parent)

    return ByFolder(config, log) if config.option.dist == "loadscope" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Import and collect all tests without a tenth of the time, which the collector would take."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which ``-m`` wants no test: all have its `pytestmark`, and none another."""
    wanted = config.option.markexpr
    if not wanted or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text()
    of_file = re.search(r"^pytestmark = .+?(?=\n\n)", text, re.DOTALL | re.MULTILINE)
    marks = set(re.findall(r"pytest\.mark\.(\w+)", of_file[0])) if of_file else set()
    if not marks or marks & TIERS != set(re.findall(r"pytest\.mark\.(\w+)", text)) & TIERS:
        return None
    return not Expression.compile(wanted).evaluate(lambda name, **_: name in marks) or None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Begin elsewhere in each folder than the other processes of tests, which collect all too.

    Each would compile every file at the same time as the others; now it finds most of it done.
    """
    report = yield
    if isinstance(collector, pytest.Directory) and report.passed:
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        first = len(report.result) * worker // workers
        report.result = [*report.result[first:], *report.result[:first]]
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the files that take longest go first: one process would work on a long one at the end."""
    if config.getoption("start_within") is None:
        place = {name: number for number, name in enumerate(_LONGEST)}
        items.sort(key=lambda item: (place.get(item.path.name, len(place)), item.path))


def _callbacks() -> list[Callable[..., Any]]:
    """Those in force, less hypothesis's own, which it installs once and keeps."""
    return [c for c in gc.callbacks if not getattr(c, "__module__", "").startswith("hypothesis")]


@pytest.fixture(scope="module")
def frozen_heap() -> Iterator[None]:
    """For tests of many full collections: the objects of all other tests are not passed over."""
    _uses_hypothesis()
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@given(st.none())
def _uses_hypothesis(_: None) -> None:
    """Its random generator would be warned of if it were first used when all is frozen."""


@pytest.fixture(scope="module")
def no_collector() -> Iterator[None]:
    """For tests of bytecodes: hypothesis hears of each collection in a function of Python."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    """Fail a test that leaves this process's collector other than it found it."""
    settings = gc.isenabled(), gc.get_threshold()
    callbacks, frozen = _callbacks(), gc.get_freeze_count()
    yield
    left = gc.isenabled(), gc.get_threshold()
    # A collection of 3.12 moves its few hundred immortal objects to the frozen ones.
    left_callbacks, froze = _callbacks(), gc.get_freeze_count() > frozen + 1000
    if froze:
        gc.unfreeze()
    gc.set_threshold(*settings[1])
    (gc.enable if settings[0] else gc.disable)()
    for callback in left_callbacks:
        if callback not in callbacks:
            gc.callbacks.remove(callback)
    assert left == settings, "the test left the collector's settings changed"
    assert left_callbacks == callbacks, "the test left gc.callbacks changed"
    assert not froze, "the test left objects frozen"


@pytest.fixture
def no_file_above() -> Callable[[int], AbstractContextManager[None]]:
    """Inside, the file system refuses to let a file grow beyond so many bytes."""

    @contextmanager
    def limited(num_bytes: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        # Before 3.12.8 and 3.13.1 bytecode that is cut short is kept, and no import works from then
        # on (CPython #126606).
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)
            patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
            resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited


@pytest.fixture
def fresh_interpreter() -> Callable[..., Any]:
    """Run a script with arguments in an interpreter of its own; what it prints, read as JSON."""
    root = Path(__file__).parents[1]

    def run(script: str, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def pinned_vllm() -> str:
    """The pinned release of vLLM and its environment, made where they are not there yet."""
    from engines.vllm.releases import VLLM

    VLLM.prepare_release(VLLM.PINNED, print)
    return VLLM.PINNED


@pytest.fixture(scope="session")
def pinned_sglang() -> str:
    """The pinned release of SGLang and its environment, made where they are not there yet."""
    from engines.sglang.releases import SGLANG

    SGLANG.prepare_release(SGLANG.PINNED, print)
    return SGLANG.PINNED


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium; tests are skipped where there is none.

    Not for the session: other tests want no process left.
    """
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()
