"""What came of a trial: its result, or in one sentence why there is none."""

import re
import signal
from pathlib import Path

import msgspec

from harness.trial.spec import REFUSED, Trial, TrialFailure, TrialResult

_LONGEST_LINE = 500


def read_answer(trial: Trial, status: int, out: bytes, err: str) -> TrialResult | TrialFailure:
    """What a trial's exit status, its answer and its errors come to."""
    last_line = err.strip().splitlines()[-1].strip()[:_LONGEST_LINE] if err.strip() else ""
    last_line = last_line or "it said nothing"
    if status == REFUSED:
        return failure(trial, "refused", last_line)
    if status < 0:
        name = signal.Signals(-status).name
        hint = ", often for want of memory" if name == "SIGKILL" else ""
        return failure(trial, "killed", f"its process was killed by {name}{hint}")
    if status:
        return _broken(trial, status, err, last_line)
    try:
        return msgspec.json.decode(out, type=TrialResult)
    except msgspec.MsgspecError as error:
        python = trial.cell.python
        hint = f"; is {python} a Python that has what gcbench needs?" if python else ""
        return failure(trial, "crashed", f"its answer cannot be read: {error}{hint}")


def failure(trial: Trial, kind: str, reason: str) -> TrialFailure:
    """Of this trial, with the reason."""
    fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
    return msgspec.convert(fields | {"kind": kind, "reason": reason}, TrialFailure)


def as_failure(trial: Trial, of: TrialFailure) -> TrialFailure:
    """The failure of another trial, which is this one's too."""
    return failure(trial, of.kind, of.reason)


def _broken(trial: Trial, status: int, err: str, last_line: str) -> TrialFailure:
    why = _last_exception(err, last_line)
    if status == _NO_COMMAND and (python := trial.cell.python):
        first_line = (err.strip() or last_line).splitlines()[0]
        return failure(trial, "refused", f"--axis python={python}: does not run: {first_line}")
    return failure(trial, "crashed", f"its process ended with status {status}: {why}")


_NO_COMMAND = 127
"""Exit status of what stands for a program that is not there, such as a shim of pyenv's."""

_LAST_FRAME = re.compile(
    r'^ +File "(.+)", line (\d+).*\n(?:^ (?! *File ").*\n|\n)*^(\w.*)$', re.MULTILINE
)
"""The frame before an exception's own line; lines of code and marks may stand between."""


def _last_exception(err: str, last_line: str) -> str:
    """The exception that the last traceback ends with, and where it was raised; the last line."""
    frames = _LAST_FRAME.findall(err)
    if not frames:
        return last_line
    file, line, exception = frames[-1]
    # Resolved: a commit's tree is known by its folder, not by the link that a trial has found.
    raised = f"{exception} ({Path(file).resolve()}:{line})"
    return raised if exception == last_line else f"{raised}; {last_line}"
