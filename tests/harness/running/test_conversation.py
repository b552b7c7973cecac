"""Processes that are talked to and ended: what is heard of real ones, and what is left of them."""

import signal
import sys
import time
from pathlib import Path

import pytest
from processes import HANG_SECONDS, children, has_ended, until

from harness.running.conversation import SaidTooMuchError, Started, TooSlowError
from harness.running.group import started
from harness.running.listener import Listener

WORD = b"ready\n"


@pytest.fixture(autouse=True)
def no_process_left():
    before = children()
    yield
    assert children() <= before


@pytest.fixture
def talk():
    """A conversation with a shell that runs a script."""
    listener, begun = Listener(), []

    def start(script: str) -> Started:
        begun.append(Started(listener, ["sh", "-c", script]))
        return begun[-1]

    yield start
    for each in begun:
        each.end()
    listener.close()


def soon() -> float:
    return time.monotonic() + HANG_SECONDS


@pytest.mark.parametrize("before", ["", "echo noise; ", "printf rea; /bin/true; printf 'dy\\n' #"])
def test_a_word_is_heard_whatever_was_said_before_and_in_however_many_pieces(talk, before):
    shell = talk(f"{before} echo ready\nread go; echo $go")
    assert shell.hears(WORD, soon())
    shell.say(b"well\n")
    assert shell.hear_out(soon()) == (0, b"well\n", "")


def test_what_is_said_at_once_behind_a_word_is_not_lost(talk):
    shell = talk("echo ready; echo answer")
    assert shell.hears(WORD, soon())
    assert not shell.hears(b"another\n", soon())
    assert shell.hear_out(soon()).said == b"answer\n"


def test_one_that_ends_without_the_word_says_how_and_why(talk):
    shell = talk("echo no such block >&2; exit 7")
    assert not shell.hears(WORD, soon())
    assert shell.hear_out(soon()) == (7, b"", "no such block\n")
    assert shell.hear_out(soon()).status == shell.end() == 7, "as often as one asks"


def test_one_that_has_ended_is_heard_though_its_child_holds_the_pipe(talk):
    shell = talk("sleep 1000 & echo $!; exit 3")
    status, said, _ = shell.hear_out(soon())
    assert status == 3
    assert has_ended(int(said))


def test_one_is_not_held_up_by_a_full_pipe_while_another_is_waited_for(talk, tmp_path):
    much = talk(f"head -c 1000000 /dev/zero; touch {tmp_path}/done")
    other = talk(f"until [ -e {tmp_path}/done ]; do sleep 0.01; done; echo ready")
    assert other.hears(WORD, soon())
    assert len(much.hear_out(soon()).said) == 1_000_000


def test_to_be_late_or_to_talk_without_end_is_told_apart_and_ends_nothing(talk):
    silent, loud = talk("read go; exit 5"), talk("exec yes")
    with pytest.raises(TooSlowError):
        silent.hears(WORD, time.monotonic() + 0.05)
    with pytest.raises(SaidTooMuchError, match="it said more than 256 MiB"):
        loud.hears(WORD, soon())
    assert not silent.has_ended()
    silent.hang_up()
    assert silent.hear_out(soon()).status == 5
    assert loud.end() == -signal.SIGKILL


@pytest.mark.parametrize(
    ("script", "grace", "status"),
    [
        ("trap 'exit 9' TERM; touch {}; while :; do sleep 0.01; done", HANG_SECONDS, 9),
        ("trap '' TERM; touch {}; while :; do sleep 0.01; done", 0.1, -signal.SIGKILL),
        ("trap 'exit 9' TERM; touch {}; while :; do sleep 0.01; done", 0, -signal.SIGKILL),
    ],
    ids=["in its grace", "after it", "without"],
)
def test_a_group_is_asked_to_end_before_all_of_it_is_killed(tmp_path, script, grace, status):
    ready, pid = tmp_path / "ready", tmp_path / "pid"
    command = ["sh", "-c", f"sleep 1000 & echo $! > {pid}; {script.format(ready)}"]
    with started(command, grace_seconds=grace) as group:
        until(ready.exists)
        assert not group.has_ended()
    assert group.end() == status
    assert has_ended(int(pid.read_text()))


def test_one_that_is_waited_for_keeps_its_status(tmp_path: Path):
    with started([sys.executable, "-c", "raise SystemExit(4)"]) as group:
        group.wait()
        assert group.has_ended()
        assert group.end() == 4
