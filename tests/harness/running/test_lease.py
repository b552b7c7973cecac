"""Timed trials of one program at a time: the others say for whom they wait."""

import subprocess
import sys

import pytest

from harness.machine.other_work import BusyMachineError
from harness.running.lease import VARIABLE, Lease

HOLDS = """
import sys
from harness.running.lease import Lease
with Lease().hold(print):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Another process that measures."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lease"))
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=-1, stdout=-1, text=True) as found:
        assert found.stdout.readline() == "held\n"
        yield found
        found.communicate("\n")


def test_one_waits_for_the_other_and_knows_who_it_is(other):
    said = []

    def says(owner: str) -> None:
        said.append(owner)
        other.kill()
        other.wait()

    with Lease().hold(says):
        assert said
        assert set(said) == {said[0]}
        assert said[0].startswith(f"process {other.pid} since ")
        with pytest.raises(BusyMachineError), Lease(limit_seconds=0).hold(lambda owner: None):
            pass


def test_who_measures_beside_it_says_so(other):
    lease = Lease(anyway=True)
    with lease.hold(lambda owner: None):
        (note,) = lease.notes
    assert note.startswith(f"Measured beside another gcbench, process {other.pid} since ")


def test_who_does_not_want_to_wait_longer_is_told_what_to_do(other):
    with (
        pytest.raises(BusyMachineError, match=r"within 0 s.*--wait more.*--wait no"),
        Lease(limit_seconds=0).hold(lambda owner: None),
    ):
        pass


@pytest.mark.parametrize("place", ["", "/nowhere/lease", "/"])
def test_where_there_is_no_lease_nobody_waits(monkeypatch, place):
    monkeypatch.setenv(VARIABLE, place)
    with Lease().hold(print), Lease().hold(print):
        pass
