"""Runs a trial in a fresh interpreter, in a process group that ends with it."""

import os
import signal
import subprocess
import sys
import time

import msgspec

from harness.trial import REFUSED, Trial, TrialFailure, TrialResult

_KEPT_VARIABLES = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED"})


def isolate(trial: Trial, timeout_seconds: float) -> TrialResult | TrialFailure:
    """The trial's result, or why there is none; no process of it is left when this returns.

    A time-out, a crash and a kill are answers like any other. Ctrl-C ends the trial and goes on
    up.
    """
    command = [trial.cell.python or sys.executable, "-P", "-m", "harness", "trial"]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(trial),
            start_new_session=True,
        )
    except OSError as error:
        return _failure(trial, "crashed", f"{command[0]} could not be started: {error.strerror}")
    began = time.monotonic()
    try:
        out, err = process.communicate(msgspec.json.encode(trial), timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        return _failure(
            trial,
            "timed_out",
            f"no result after {time.monotonic() - began:.0f} s; raise --trial-timeout or ask for "
            "less work",
        )
    finally:
        _end_group(process)
    return _read(trial, process.returncode, out, err.decode(errors="replace"))


def _environment(trial: Trial) -> dict[str, str]:
    """One thread for the numeric libraries, a known hash seed, no switch of the user's shell."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") or name in _KEPT_VARIABLES
    }
    hash_seed = trial.seed % 2**32 if trial.mode == "timing" else 0
    return kept | {
        "PYTHONHASHSEED": str(hash_seed),
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


def _read(
    trial: Trial, status: int, out: bytes, err: str
) -> TrialResult | TrialFailure:
    last_line = err.strip().splitlines()[-1] if err.strip() else "it said nothing"
    if status == REFUSED:
        return _failure(trial, "refused", last_line)
    if status < 0:
        name = signal.Signals(-status).name
        hint = "; often for want of memory" if name == "SIGKILL" else ""
        return _failure(trial, "killed", f"its process was killed by {name}{hint}")
    if status:
        return _failure(trial, "crashed", f"its process ended with status {status}: {last_line}")
    try:
        return msgspec.json.decode(out, type=TrialResult)
    except msgspec.MsgspecError as error:
        return _failure(trial, "crashed", f"its answer cannot be read: {error}")


def _failure(trial: Trial, kind: str, reason: str) -> TrialFailure:
    return msgspec.convert(
        {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed, "kind": kind, "reason": reason},
        TrialFailure,
    )
