"""Ctrl-C at any moment of a real experiment: nothing of it looks finished, and it can go on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from examples import attempts

from dashboards.site import build_site
from harness.experiment.store import INCOMPLETE_FILE
from harness.machine.interrupts import held_interrupts
from harness.result.result import RESULT_SCHEMA

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TINY = [
    "--device",
    "null",
    "--num-requests",
    "4",
    "--output-lens",
    "4",
    "--batch-size",
    "4",
    "--heap-objects",
    "0",
    "--representation",
    "list_of_lists",
]
COMPARE = ["compare", *TINY, "--gc", "default,disabled", "--delivery", "per_request"]
FEW = [*COMPARE, "--rounds", "1", "--no-counting"]
RESUMED_EACH = 4
"""Of the moments, so many-th: a resume runs all that is left."""


class Ended(NamedTuple):
    """How a command has ended. ``operations``: how many there were that could be interrupted."""

    status: int
    out: str
    err: str
    operations: int


def run(moment: int | str, folder: Path, *arguments: str) -> Ended:
    """A command that is interrupted at one of its operations, or at none where that is below 0."""
    words = [*arguments, "--json", f"{folder}.json", "--output", str(folder)]
    done = subprocess.run(
        [sys.executable, str(HERE / "interrupted_command.py"), str(moment), *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{HERE.parent}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    counted = int(folder.with_name(f"{folder.name}.operations").read_text())
    return Ended(done.returncode, done.stdout, done.stderr, counted)


def page(runs: Path) -> str:
    """All that the overview and the heat map say of a folder of runs."""
    site = runs.with_name(f"{runs.name}-site")
    build_site(runs, site)
    return "".join((site / name).read_text() for name in ("index.html", "heatmap.html"))


def is_complete(path: Path) -> bool:
    """What a result says of itself."""
    result = json.loads(path.read_text())
    assert result["schema"] == RESULT_SCHEMA
    return result["is_complete"]


def is_interrupted(number: int, runs: Path, *arguments: str) -> str:
    """Interrupt a comparison; the name of what is to be gone on with, "" where nothing is."""
    ended = run(number, runs, *arguments)
    assert ended.status == 130
    assert "interrupted" in ended.err
    said = runs.with_name(f"{runs.name}.json")
    experiment = next(runs.iterdir(), runs / "none yet") if runs.exists() else runs
    if not (experiment / INCOMPLETE_FILE).exists():
        assert not said.exists()
        return ""
    assert not is_complete(said)
    assert not is_complete(experiment / "result.json")
    assert "incomplete" in page(runs)
    assert ended.out.startswith("✗ Incomplete: interrupted before everything was measured")
    assert "Best" not in ended.out
    assert f"incomplete; go on with the same command and --resume {experiment.name}" in ended.err
    return experiment.name


def is_resumed(experiment: str, runs: Path, *arguments: str) -> None:
    """Go on with what was interrupted, or begin anew where nothing had begun."""
    assert run(-1, runs, *arguments, *(["--resume", experiment] if experiment else [])).status == 0
    said = runs.with_name(f"{runs.name}.json")
    assert is_complete(said)
    assert json.loads(said.read_text())["surroundings"]["during"]["cores"] >= 1
    assert "incomplete" not in page(runs)
    assert not list(runs.glob(f"*/{INCOMPLETE_FILE}"))


@pytest.mark.slow
def test_an_interrupted_comparison_looks_so_and_goes_on(tmp_path):
    experiment = is_interrupted(12, tmp_path / "runs", *FEW)
    assert experiment
    is_resumed(experiment, tmp_path / "runs", *FEW)


@pytest.mark.slow
def test_a_comparison_interrupted_at_many_moments_never_looks_finished(tmp_path):
    whole = run(-1, tmp_path / "whole", *FEW)
    assert whole.status == 0
    moments = np.linspace(0, whole.operations - 1, attempts(14)).astype(int).tolist()
    begun = 0
    for place, number in enumerate(moments):
        runs = tmp_path / f"runs-{number}"
        experiment = is_interrupted(number, runs, *FEW)
        begun += bool(experiment)
        if place % RESUMED_EACH == 0:
            is_resumed(experiment, runs, *FEW)
    assert begun >= len(moments) - 3, "only the first and the last operations miss no trial"


_INTERRUPTED_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.addaudithook(lambda event, what: event == "import" and what[0] == "click"
                 and os.kill(os.getpid(), signal.SIGINT))
from harness.__main__ import main
sys.argv[:] = ["gcbench", "list"]
sys.exit(main())
"""


def test_an_interrupt_while_modules_are_imported_is_no_traceback():
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_IMPORT],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_interrupts_wait_until_what_is_written_is_whole():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    reached = []

    def write() -> None:
        with held_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("the end")

    try:
        with pytest.raises(KeyboardInterrupt):
            write()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == ["the end"]
