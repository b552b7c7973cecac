"""Whether an engine keeps its contract, looked at where its trials would run."""

import os
import signal
import subprocess
from contextlib import suppress

import msgspec

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.tied_process import start_tied
from harness.machine.clean_environment import clean_environment
from harness.machine.doctor import DoctorFinding

_SECONDS = 120.0
"""For a few requests of a few tokens each."""


def check_engine(name: str) -> list[DoctorFinding]:
    """What is wrong with it, or what it can do and what each part that it lacks would add.

    Raises ValueError for a name that is unknown or leads to no engine.
    """
    engine: EngineClass = ENGINES.load(name)
    program, environment = engine.launch("", "")
    process = start_tied(
        [program, "-P", "-m", "harness.trial.engine_check", name],
        env=clean_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        said, wrong = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        why = f"a call has not returned within {_SECONDS:g} s"
        return [DoctorFinding("bad", "contract", why, "step() must return when a step is over")]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    try:
        return msgspec.json.decode(said, type=list[DoctorFinding])
    except msgspec.DecodeError:
        last = (wrong.decode(errors="replace").strip() or "no word").splitlines()[-1]
        return [DoctorFinding("bad", "contract", f"its process ended: {last}")]
