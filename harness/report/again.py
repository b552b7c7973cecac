"""The command that shows a stored run again."""

import shlex
from pathlib import Path

from harness.experiment.store import RUNS


def report_command(output: Path, name: str) -> str:
    """``gcbench report`` of a run in a folder of runs, by its name alone where that is enough."""
    where = name if output == RUNS else str(output / name)
    return f"gcbench report {shlex.quote(where)} --details"
