"""Trials that are forks of one interpreter: real ones that take turns, and ones that go wrong.

Those that go wrong are played by a script in the place of the interpreter, whose forks are shells.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import msgspec
import psutil
import pytest
from processes import children, descriptors, has_ended, opened_since, overstepped
from small import CELL, TRIAL_SECONDS, answer, schedule, trial

import engines
from engines import tied_process
from harness.experiment.grid import traits
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import counting_shared, heap_shared
from harness.experiment.trial_process import TrialInterpreter
from harness.trial.modes import MODES
from harness.trial.spec import TrialBatch, TrialFailure, TrialResult

SCHEDULE = schedule([40] * 8)
GOOD = "echo ready; read go; echo paused; read go; cat {answer}"
TAKE_TURNS, COUNT = {"slice_steps": 1}, {"mode": "counts"}

PLAYED = """#!{python} -IS
import json, os, socket, sys
asked = json.loads(sys.stdin.readline())
scripts = json.load(open({scripts!r}))
{first}
told = socket.socket(fileno=asked["news"])
tell = lambda ends=(), **news: socket.send_fds(told, [json.dumps(news).encode() + b"\\n"], ends)
forks = {{}}
for index, script in enumerate(scripts):
    (ask, asks), (hear, says), (read, wrong) = pipes = os.pipe(), os.pipe(), os.pipe()
    if not (pid := os.fork()):
        for own, end in enumerate((ask, says, wrong)):
            os.dup2(end, own)
        told.close()
        os.closerange(3, 1 + max(map(max, pipes)))
        os.execv("/bin/sh", ["sh", "-c", script])
    tell((asks, hear, read), index=index, pid=pid)
    for end in sum(pipes, ()):
        os.close(end)
    forks[pid] = index
while forks:
    pid, status = os.wait()
    tell(index=forks.pop(pid), pid=pid, status=os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def play(tmp_path):
    """Trials of which each is a shell script in a fork of an interpreter that does ``first``."""

    def write(scripts, first="", **changes):
        path, good = tmp_path / "python", tmp_path / "answer.json"
        played = trial(SCHEDULE, tmp_path, msgspec.structs.replace(CELL, python=str(path)))
        good.write_bytes(msgspec.json.encode(answer(played, {"num_steps": 3.0})))
        told = tmp_path / "scripts.json"
        told.write_text(json.dumps([each.replace("{answer}", str(good)) for each in scripts]))
        path.write_text(PLAYED.format(python=sys.executable, scripts=str(told), first=first))
        path.chmod(0o755)
        return [msgspec.structs.replace(played, **(changes or TAKE_TURNS))] * len(scripts)

    return write


@pytest.fixture(autouse=True)
def nothing_left():
    tied_process.start_tied(["true"]).wait()  # makes the pipe that ties processes to this one
    before, opened = children(), descriptors()
    yield
    assert children() <= before
    assert not opened_since(opened)


@pytest.mark.slow
def test_a_fork_is_measured_as_an_interpreter_of_its_own(tmp_path):
    cells = [
        msgspec.structs.replace(CELL, heap_objects=250_000, **changes)
        for changes in ({"gc": "default"}, {"gc": "disabled"}, {"representation": "flat_arrays"})
    ]
    asked = [trial(SCHEDULE, tmp_path, cell, slice_steps=10, seed=3) for cell in cells]
    together = list(LocalExecutor(TRIAL_SECONDS).run(asked))
    assert [type(each) for each in together] == [TrialResult] * 3, together
    for mine, each in zip(together, asked, strict=True):
        (theirs,) = LocalExecutor(TRIAL_SECONDS).run([each])
        for name in (
            "cell",
            "seed",
            "tokens_sha256",
            "interpreter",
            "dependencies",
            "code_sha256",
            "machine",
            "engine_state",
        ):
            assert getattr(mine, name) == getattr(theirs, name)
        (own,), (others,) = mine.processes, theirs.processes
        assert (own.collections, own.state.thresholds) == (
            others.collections,
            others.state.thresholds,
        )
        heap = mine.metrics["tracked_heap"]
        assert heap == pytest.approx(theirs.metrics["tracked_heap"], rel=1e-3)
        assert heap == pytest.approx(250_000, rel=2e-3)
        assert len(mine.step_host_ns) == len(theirs.step_host_ns) == 40


@pytest.mark.slow
def test_they_share_an_interpreter_and_what_cannot_be_built_is_its_own_failure(tmp_path):
    good = trial(SCHEDULE, tmp_path, slice_steps=10)
    foreign = msgspec.structs.replace(good, schedule_sha256="of another")
    asked = TrialBatch(trials=[foreign, good, good], shared="heap", at_once=3)
    with TrialInterpreter(asked, TRIAL_SECONDS) as forks:
        for fork in forks.trials:
            fork.wait_until_ready()
            fork.pin(max(os.sched_getaffinity(0)))
        refused, killed, well = forks.trials
        parents = {psutil.Process(each.pid).ppid() for each in (killed, well)}
        psutil.Process(killed.pid).kill()
        while well.run_slice():
            pass
        outcomes = [each.measure() for each in (refused, killed, well)]
        assert parents == {forks.pid}
    assert [each.kind for each in outcomes[:2]] == ["refused", "killed"]
    assert "is not the schedule that was asked for" in outcomes[0].reason
    assert isinstance(outcomes[2], TrialResult), outcomes[2]


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["interpreter", "engine"])
def test_a_thread_that_an_engine_starts_when_it_is_built_is_told_of(tmp_path, shared):
    """Also by forks of the process that built it, in which it does not run."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(engines.__file__).parent, tmp_path / "engines", ignore=ignored)
    file, built = tmp_path / "engines/builtin/engine.py", "        config = self.complete(config)\n"
    text = file.read_text()
    assert built in text
    start = "        import threading\n        threading.Thread(target=time.sleep, args=(9e5,), "
    file.write_text(text.replace(built, f"{built}{start}daemon=True).start()\n", 1))
    beside = []
    for release in ("", str(tmp_path)):
        cell = msgspec.structs.replace(CELL, release=release)
        asked = trial(SCHEDULE, tmp_path, cell, mode="opcodes")
        batch = TrialBatch(trials=[asked, asked], shared=shared)
        with TrialInterpreter(batch, TRIAL_SECONDS) as forks:
            outcomes = [each.measure() for each in forks.trials]
        assert all(isinstance(each, TrialResult) for each in outcomes), outcomes
        beside.append({each.costs.beside for each in outcomes})
    assert beside == [{0}, {1}]


@pytest.mark.slow
def test_each_has_its_own_end_and_the_others_go_on(play, tmp_path):
    log = tmp_path / "log"
    turn = f"read go; echo {{}} >> {log}; echo paused; "
    logged = [f"echo ready; {turn.format(n) * 3} read go; cat {{answer}}" for n in (0, 1)]
    bad = {
        "killed": "echo ready; read go; kill -9 $$",
        "crashed": "echo ready; read go; echo paused; read go; echo no such block >&2; exit 7",
        "refused": "echo the collector is on >&2; exit 3",
        "timed_out": "echo ready; read go; echo paused; read go; sleep 1000",
    }

    def run(seconds):
        log.unlink(missing_ok=True)
        return list(LocalExecutor(seconds).run(play([*logged, *bad.values(), GOOD])))

    seconds, outcomes = overstepped(
        run, lambda found: [getattr(each, "kind", "") for each in found].count("timed_out") == 1
    )
    found = {each.kind: each.reason for each in outcomes if isinstance(each, TrialFailure)}
    assert list(found) == list(bad)
    assert "status 7: no such block" in found["crashed"]
    assert found["refused"] == "the collector is on"
    assert f"no answer within {seconds:g} s" in found["timed_out"]
    assert [type(outcomes[n]) for n in (0, 1, -1)] == [TrialResult] * 3
    assert log.read_text().split() == ["0", "1"] * 3


@pytest.mark.slow
def test_of_those_that_count_each_has_its_own_end(play):
    scripts = [
        "kill -9 $$",
        "echo ready; read go; cat {answer}",
        "echo no such block >&2; exit 3",
        "echo ready; exec sleep 1000",
        # More than a pipe holds, while another is waited for.
        "echo ready; read go; head -c 100000 /dev/zero | tr '\\0' ' '; cat {answer}",
    ]
    _, found = overstepped(
        lambda seconds: list(LocalExecutor(seconds).run(play(scripts, **COUNT))),
        lambda found: [getattr(each, "kind", "") for each in found].count("timed_out") == 1,
    )
    killed, well, refused, slow, much = found
    assert (killed.kind, killed.reason[:26]) == ("killed", "its process was killed by ")
    assert (refused.kind, refused.reason, refused.mode) == ("refused", "no such block", "counts")
    assert slow.kind == "timed_out"
    assert [type(well), type(much)] == [TrialResult] * 2


@pytest.mark.parametrize("changes", [TAKE_TURNS, COUNT], ids=["take turns", "count"])
@pytest.mark.parametrize(
    ("first", "timeout", "kind", "reason"),
    [
        ("sys.exit('no such release')", TRIAL_SECONDS, "crashed", "status 1: no such release"),
        ("print('no torch', file=sys.stderr); sys.exit(3)", TRIAL_SECONDS, "refused", "no torch"),
        ("os.kill(os.getpid(), 9)", TRIAL_SECONDS, "killed", "killed by SIGKILL"),
        ("os._exit(0)", TRIAL_SECONDS, "crashed", "its answer cannot be read"),
        ("import time; time.sleep(1000)", 1.5, "timed_out", "no answer within 1.5 s"),
    ],
)
def test_where_it_fails_before_it_forks_all_its_trials_say_why(
    play, first, timeout, kind, reason, changes
):
    for outcome in LocalExecutor(timeout).run(play([GOOD, GOOD], first, **changes)):
        assert isinstance(outcome, TrialFailure)
        assert outcome.kind == kind
        assert reason in outcome.reason


def test_an_interpreter_that_is_none_is_named_by_each(tmp_path):
    cell = msgspec.structs.replace(CELL, python="/nowhere/python")
    asked = [trial(SCHEDULE, tmp_path, cell, slice_steps=1)] * 2
    for outcome in LocalExecutor(TRIAL_SECONDS).run(asked):
        assert isinstance(outcome, TrialFailure)
        assert "/nowhere/python: no such program" in outcome.reason


def test_where_it_is_killed_its_forks_go_with_it(play, tmp_path):
    """Played, for a real one would not be killed by its fork."""
    kills = f"echo $$ > {tmp_path}/pid; echo ready; read go; kill -9 $PPID; exec sleep 1000"
    good, bad = LocalExecutor(TRIAL_SECONDS).run(play([GOOD, kills]))
    assert isinstance(good, TrialResult | TrialFailure)
    assert isinstance(bad, TrialFailure)
    assert bad.reason == "its process was killed by SIGKILL, often for want of memory"
    assert has_ended(int(Path(tmp_path, "pid").read_text()))


@pytest.mark.parametrize(
    ("changes", "can"),
    [
        ({}, True),
        ({"device": "modelled"}, True),
        ({"worker": "process"}, False),
        ({"output_processing": "thread"}, False),
        ({"device": "cpu", "model": "opt-tiny"}, False),
        ({"device": "cuda", "model": "opt-tiny"}, False),
        ({"engine": "vllm-hostpath", "representation": "native"}, False),
    ],
)
def test_only_what_is_one_process_and_thread_can_fork(changes, can):
    cell = msgspec.structs.replace(CELL, **changes)
    assert traits(cell).can_fork is can


@pytest.mark.parametrize("mode", MODES)
def test_a_trial_on_a_gpu_is_no_fork(tmp_path, mode):
    """Whether it counts or takes turns: CUDA does not work in one."""
    cell = msgspec.structs.replace(CELL, device="cuda", model="opt-tiny")
    asked = trial(SCHEDULE, tmp_path, cell, mode=mode, slice_steps=1)
    assert counting_shared(asked) is heap_shared(asked) is None


def test_forks_are_of_one_interpreter_release_and_seed_and_take_turns(tmp_path):
    def key(**changes):
        fields = {name: changes.pop(name) for name in ("seed", "slice_steps") if name in changes}
        cell = msgspec.structs.replace(CELL, **changes)
        return heap_shared(trial(SCHEDULE, tmp_path, cell, **{"slice_steps": 1, **fields}))

    assert key() == key(gc="freeze", heap_objects=7, representation="flat_arrays")
    assert len({key(), key(seed=1), key(python="/other"), key(release="abc")}) == 4
    assert key(slice_steps=0) is None


@pytest.mark.slow
def test_one_that_is_stopped_holds_nobody_up(play):
    trials = play([GOOD, "echo ready; exec sleep 1000"])
    with TrialInterpreter(
        TrialBatch(trials=trials, shared="heap", at_once=2), TRIAL_SECONDS
    ) as forks:
        for each in forks.trials:
            each.wait_until_ready()
        pids = [each.pid for each in forks.trials]
        os.kill(forks.pid, signal.SIGSTOP)
    assert all(map(has_ended, pids))
