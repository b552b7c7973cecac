"""``--wait``: measured when it is quiet, or not at all."""

import re

import pytest

from harness.cli.main import main
from harness.machine.other_work import BusyMachineError, OtherWork
from harness.verbs.quiet import parse_limit, wait_until_quiet

QUIET = OtherWork(seconds=3, cores=2, others=0.02, stolen=0)
BUSY = OtherWork(seconds=3, cores=2, others=1.4, stolen=0.02)


class Looks:
    """A machine at which one looks; each look takes three seconds of its own clock."""

    def __init__(self, *looks: OtherWork) -> None:
        self.looks, self.seconds, self.said = list(looks), 0.0, list[str]()

    def look(self) -> OtherWork:
        self.seconds += 3
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def wait(self, limit_seconds: float) -> OtherWork:
        return wait_until_quiet(limit_seconds, self.said.append, self.look, lambda: self.seconds)


def test_it_waits_until_two_looks_in_a_row_are_quiet():
    machine = Looks(BUSY, QUIET, BUSY, QUIET, QUIET, BUSY)
    assert machine.wait(60) == QUIET
    assert machine.seconds == 15
    assert machine.said[0] == (
        "waiting for a quiet machine: others take 1.4 of 2 cores, 2.0 % is stolen; 57 s left"
    )


def test_it_does_not_wait_for_ever():
    machine = Looks(BUSY)
    with pytest.raises(BusyMachineError, match=r"did not become quiet within 10 s.*nothing was"):
        machine.wait(10)
    assert machine.seconds == 12


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 0), ("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)]
)
def test_a_limit_is_a_time(text, seconds):
    assert parse_limit(text) == seconds


@pytest.mark.parametrize(
    "command", [["compare"], ["doctor", "--noise"], ["releases", "vllm"], ["gate", "main"]]
)
@pytest.mark.parametrize("text", ["soon", "-3", "0", "10 days"])
def test_any_other_limit_is_refused_before_anything_is_done(command, text, tmp_path, capsys):
    status = main([*command, "--wait", text, "--output", str(tmp_path / "runs")])
    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2
    assert re.search(rf"--wait {re.escape(text)}: must be how long at most", line)
    assert not (tmp_path / "runs").exists()
