"""What every command's result says of itself; each kind adds what it has found."""

from pathlib import Path

import msgspec

from harness.files import indented, write_whole, writing
from harness.machine.describe import Machine
from harness.machine.other_work import Surroundings

RESULT_SCHEMA = "gcbench.result/1"

RESULT_FILE = "result.json"
"""In the folder of a run, written last."""


class NotExportedError(Exception):
    """A format cannot hold this result, and why."""


class ReplayedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """What was replayed under a name; ``hash`` is the schedule's SHA-256."""

    name: str
    hash: str = ""
    num_requests: int = 0
    total_output_tokens: int = 0


class Result(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """``name``: of the run. ``command``: what was typed. ``surroundings``: what else the machine
    did, where it was this one. ``code_commits``: those that the engines came from. ``left_out``:
    what was asked for and is not in it, and why. Not ``is_complete``: interrupted, and of what had
    ended by then.

    JSON as it stands, with the ``kind`` of its class.
    """

    name: str
    command: str = ""
    machine: Machine = Machine()
    workloads: list[ReplayedWorkload] = []
    surroundings: Surroundings | None = None
    code_commits: list[str] = []
    left_out: list[str] = []
    notes: list[str] = []
    is_complete: bool = True
    schema: str = RESULT_SCHEMA


def keep_result(runs: Path, result: Result) -> None:
    """Write it into the folder of its run, below ``runs``. Raises StoreError."""
    folder = runs / result.name
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / RESULT_FILE, indented(result))
