"""What this machine can do, and what would spoil a measurement on it now."""

from pathlib import Path

from harness.machine.doctor import interpreter, surroundings
from harness.machine.doctor.finding import DoctorFinding

__all__ = ["DoctorFinding", "check_machine"]


def check_machine(results: Path = Path("results/runs")) -> list[DoctorFinding]:
    """Look at everything, once; takes about as long as importing torch plus two seconds."""
    return [
        interpreter.python(),
        interpreter.torch(),
        interpreter.environment(),
        interpreter.collector(),
        interpreter.tracing(),
        surroundings.cores(),
        surroundings.other_work(),
        surroundings.other_trials(),
        surroundings.timer(),
        surroundings.governor(),
        surroundings.memory(),
        surroundings.swap(),
        surroundings.huge_pages(),
        surroundings.results_folder(results),
    ]
