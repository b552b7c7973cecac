"""Trials in processes of their own that go wrong in every way, for real.

Most are played by a shell script in the place of the interpreter: it says that it is ready and
then does what the test is about.
"""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec
import psutil
import pytest
from processes import children, has_ended, overstepped
from small import CELL, TRIAL_SECONDS, answer, schedule, trial

from harness.experiment.local_executor import LocalExecutor
from harness.experiment.trial_process import TrialInterpreter
from harness.missing_package import missing_package
from harness.trial.spec import Trial, TrialBatch, TrialFailure, TrialResult

ROOT = Path(__file__).parents[3]
SHORT = schedule([3, 2])
ENDLESS = schedule([1_000_000])
PREPARES = "read trial; echo ready; read go"

Play = Callable[..., Trial]


@pytest.fixture
def play(tmp_path) -> Play:
    """A trial whose interpreter is a shell script; ``{answer}`` is a good answer's file."""

    def write(script: str, name: str = "python") -> Trial:
        path = tmp_path / name
        played = trial(SHORT, tmp_path, msgspec.structs.replace(CELL, python=str(path)))
        good = tmp_path / "answer.json"
        good.write_bytes(msgspec.json.encode(answer(played, {"num_steps": 3.0})))
        path.write_text("#!/bin/sh\n" + script.replace("{answer}", str(good)) + "\n")
        path.chmod(0o755)
        return played

    return write


@pytest.fixture(autouse=True)
def no_process_left():
    before = children()
    yield
    assert children() <= before


def only(outcomes) -> TrialResult | TrialFailure:
    (outcome,) = outcomes
    return outcome


SAYS_WHERE = (
    "printf 'Thread 1 (most recent call first):\\n  File \"/x/a/b.py\", line 3 in step\\n' "
    ">$GCBENCH_STACKS/stacks-1"
)


@pytest.mark.parametrize(
    ("script", "kind", "reason"),
    [
        ("exit 0", "crashed", "a Python that has what gcbench needs?"),
        ("exit 1", "crashed", "its process ended with status 1: it said nothing"),
        ("echo noise >&2; echo 'ImportError: no torch' >&2; exit 1", "crashed", "no torch"),
        (f"{PREPARES}; echo 'MemoryError' >&2; exit 1", "crashed", "status 1: MemoryError"),
        ("printf 'pyenv: not found\\nmore' >&2; exit 127", "refused", "does not run: pyenv: not f"),
        ("read trial; echo 'this is not the schedule' >&2; exit 3", "refused", "this is not the s"),
        (f"{PREPARES}; echo 'the collector is on' >&2; exit 3", "refused", "the collector is on"),
        (f"{PREPARES}; exit 0", "crashed", "its answer cannot be read"),
        (f"{PREPARES}; echo '{{}}'", "crashed", "its answer cannot be read"),
        ("kill -9 $$", "killed", "killed by SIGKILL, often for want of memory"),
        (f"{PREPARES}; kill -9 $$", "killed", "killed by SIGKILL, often for want of memory"),
        (f"{PREPARES}; kill -SEGV $$", "killed", "killed by SIGSEGV"),
    ],
)
def test_what_goes_wrong_is_told_in_a_sentence_and_the_others_answer(play, script, kind, reason):
    check_beside_others(play, script, kind, reason, LocalExecutor(TRIAL_SECONDS).run)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exec sleep 1000", "no answer within {} s; raise --trial-timeout"),
        (f"{SAYS_WHERE}; exec sleep 1000", "within {} s, when it was in step (a/b.py:3); raise"),
        (f"{PREPARES}; exec sleep 1000", "no answer within {} s"),
        (f"{PREPARES}; printf '{{'; sleep 1000", "no answer within {} s"),
        ("echo rea; exec sleep 1000", "no answer within {} s"),
        ("while echo I think; do sleep 0.01; done", "no answer within {} s"),
        (f"{PREPARES}; while echo I think; do sleep 0.01; done", "no answer within {} s"),
    ],
)
def test_what_does_not_answer_in_time_is_told_and_the_others_answer(play, script, reason):
    before, after = reason.split("{}")

    def run(trials):
        nonlocal before
        seconds, outcomes = overstepped(
            lambda seconds: list(LocalExecutor(seconds).run(trials)),
            lambda found: after in found[1].reason and all_answered(found[::2]),
        )
        before += f"{seconds:g}"
        return outcomes

    bad = check_beside_others(play, script, "timed_out", after, run)
    assert before + after in bad.reason


def all_answered(outcomes) -> bool:
    return all(isinstance(each, TrialResult) for each in outcomes)


def check_beside_others(play, script, kind, reason, run) -> TrialFailure:
    """What became of a trial between two others, which answer."""
    good = play(f"{PREPARES}; cat {{answer}}", "good")
    first, bad, last = run([good, play(script, "bad"), good])
    assert isinstance(bad, TrialFailure)
    assert bad.kind == kind
    assert reason in bad.reason
    assert "\n" not in bad.reason
    for outcome in (first, last):
        assert isinstance(outcome, TrialResult)
        assert outcome.metrics == {"num_steps": 3.0}
    return bad


@pytest.mark.slow
@pytest.mark.parametrize("to", [1, 2])
def test_one_that_talks_without_end_is_cut_short(play, to):
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([play(f"{PREPARES}; exec yes >&{to}")]))
    assert isinstance(outcome, TrialFailure)
    assert outcome.reason == "it said more than 256 MiB"


@pytest.mark.slow
def test_its_temporary_folder_goes_with_it_and_with_what_it_left_running(play, tmp_path):
    said = tmp_path / "said"
    script = (
        f"{PREPARES}; sleep 1000 & echo $! $TMPDIR > {said}; touch $TMPDIR/left; cat {{answer}}"
    )
    bad = play(f"{PREPARES}; mkdir $TMPDIR/deep; exec sleep 1000", "bad")
    trials = [play(script), bad]
    _, (outcome, _) = overstepped(
        lambda seconds: list(LocalExecutor(seconds).run(trials)),
        lambda outcomes: all_answered(outcomes[:1]),
    )
    assert isinstance(outcome, TrialResult)
    pid, folder = said.read_text().split()
    assert has_ended(int(pid))
    assert not Path(folder).exists()
    assert not list(Path(folder).parent.glob(f"{Path(folder).name[:-8]}*/deep"))


MAPS = """
import sys, multiprocessing.shared_memory
made = multiprocessing.shared_memory.SharedMemory(create=True, size=64)
held = multiprocessing.shared_memory.SharedMemory(name=sys.argv[1])
print(made.name, file=open(sys.argv[2], "w"), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="no named memory to be seen here")
def test_memory_with_a_name_goes_with_the_trial_unless_another_has_it(play, tmp_path, monkeypatch):
    said = tmp_path / "said"
    monkeypatch.setenv("MAPS", MAPS)
    with NamedTemporaryFile(dir="/dev/shm") as ours:
        ours.truncate(64)
        name = Path(ours.name).name
        script = f'{PREPARES}; exec {sys.executable} -c "$MAPS" {name} {said}'
        with mmap(ours.fileno(), 64):
            played = play(script)
            _, outcome = overstepped(
                lambda seconds: only(LocalExecutor(seconds).run([played])),
                lambda _: said.exists() and bool(said.read_text()),
            )
            assert isinstance(outcome, TrialFailure)
            assert not Path("/dev/shm", said.read_text().strip()).exists()
            assert Path(ours.name).exists()


@pytest.mark.parametrize("python", ["/nowhere/python", "/"])
def test_an_interpreter_that_is_none_is_named(tmp_path, python):
    asked = trial(SHORT, tmp_path, msgspec.structs.replace(CELL, python=python))
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([asked]))
    assert isinstance(outcome, TrialFailure)
    assert outcome.kind == "refused"
    assert outcome.reason == f"--axis python={python}: no such program; give an interpreter's path"


@pytest.mark.slow
def test_who_is_too_slow_is_gone_before_the_next_one_measures(play, tmp_path):
    hangs = play(f"echo $$ > {tmp_path}/pid; {PREPARES}; exec sleep 1000", "hangs")
    stuck = play(f"echo $$ > {tmp_path}/pid2; exec sleep 1000", "stuck")
    looks = play(
        f"{PREPARES}; for p in pid pid2; do kill -0 $(cat {tmp_path}/$p) && exit 7; done; "
        "cat {answer}",
        "looks",
    )
    _, (*_, outcome) = overstepped(
        lambda seconds: list(LocalExecutor(seconds).run([hangs, stuck, looks])),
        lambda outcomes: getattr(outcomes[-1], "kind", "") != "timed_out",
    )
    assert isinstance(outcome, TrialResult), outcome


def test_trials_measure_one_after_another_and_only_when_all_are_ready(play, tmp_path):
    log = tmp_path / "log"
    script = (
        f"read trial; echo ready $0 >> {log}; echo ready; read go; echo begin $0 >> {log};"
        f" echo end $0 >> {log}; cat {{answer}}"
    )
    names = ["a", "b", "c"]
    assert len(list(LocalExecutor(TRIAL_SECONDS).run([play(script, name) for name in names]))) == 3
    said = [line.split() for line in log.read_text().splitlines()]
    assert sorted(Path(path).name for _, path in said[:3]) == names
    assert [(word, Path(path).name) for word, path in said[3:]] == [
        (word, name) for name in names for word in ("begin", "end")
    ]


def test_stopping_to_listen_ends_all_trials(play, tmp_path):
    script = f"echo $$ > {tmp_path}/{{name}}; {PREPARES}; cat {{answer}}"
    outcomes = LocalExecutor(TRIAL_SECONDS).run(
        [play(script.replace("{name}", n), n) for n in ("a", "b")]
    )
    assert isinstance(next(outcomes), TrialResult)
    outcomes.close()
    assert has_ended(int((tmp_path / "b").read_text()))


def test_much_noise_does_not_stop_a_trial(play):
    flood = "i=0; while [ $i -lt 3000 ]; do echo 'a warning that nobody asked for, in full' >&2"
    flood += "; i=$((i+1)); done"
    outcome = only(
        LocalExecutor(TRIAL_SECONDS).run([play(f"{flood}; {PREPARES}; {flood}; cat {{answer}}")])
    )
    assert isinstance(outcome, TrialResult), outcome


@pytest.mark.parametrize("mode", ["timing", "counts", "tracked", "opcodes"])
def test_the_environment_is_known(play, tmp_path, monkeypatch, mode):
    for name in ("PYTHONOPTIMIZE", "PYTHONMALLOC", "PYTHONUNBUFFERED", "PYTHONHASHSEED"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", "/kept")
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    asked = play(f"env > {tmp_path}/env")
    only(
        LocalExecutor(TRIAL_SECONDS).run(
            [msgspec.structs.replace(asked, mode=mode, seed=2**32 + 5)]
        )
    )
    lines = (tmp_path / "env").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    assert {name: value for name, value in seen.items() if name.startswith("PYTHON")} == {
        "PYTHONPATH": f"{ROOT}:/kept",
        "PYTHONHASHSEED": "5" if mode == "timing" else "0",
    }
    for library in ("OMP", "MKL", "OPENBLAS"):
        assert seen[f"{library}_NUM_THREADS"] == "1"


@pytest.mark.slow
def test_real_trials_that_cannot_be_run_are_refused_beside_one_that_can(tmp_path):
    good = trial(SHORT, tmp_path)
    missing = msgspec.structs.replace(good, schedule_path=str(tmp_path / "none.npz"))
    foreign = msgspec.structs.replace(good, schedule_sha256="of another")
    raises = msgspec.structs.replace(good, cell=msgspec.structs.replace(CELL, batch_size=0))
    outcomes = list(LocalExecutor(TRIAL_SECONDS).run([missing, foreign, good, raises]))
    assert isinstance(outcomes[2], TrialResult), outcomes[2]
    for outcome, words in zip(
        [outcomes[0], outcomes[1], outcomes[3]],
        ["none.npz", "is not the schedule that was asked for", "batch size 0"],
        strict=True,
    ):
        assert isinstance(outcome, TrialFailure)
        assert outcome.kind == "refused"
        assert words in outcome.reason


@pytest.mark.parametrize(("lacking", "shape"), [("numpy", "int_or_list"), ("torch", "tensor")])
def test_a_package_that_its_interpreter_lacks_is_a_sentence(tmp_path, monkeypatch, lacking, shape):
    """Before anything of the trial is read, or as late as the engine needs it."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys; sys.modules[{lacking!r}] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cell = msgspec.structs.replace(CELL, representation=shape)
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([trial(SHORT, tmp_path, cell)]))
    assert isinstance(outcome, TrialFailure)
    assert (outcome.kind, outcome.reason) == (
        "refused",
        missing_package(ModuleNotFoundError(name=lacking)),
    )


@pytest.mark.slow
def test_a_real_trial_that_hears_noise_and_one_whose_engine_raises(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent("""
            import os
            os.write(1, b"a start-up file talks\\n")

            def noisy(*_):
                print("a library talks", flush=True)
                os.write(1, b"a C library talks\\n")
                import engines.builtin.engine as module
                if "EXPLODES" in os.environ:
                    module.Engine.step = lambda self: 1 / 0

            import sys
            class Watch:
                def find_spec(self, name, path=None, target=None):
                    if name == "harness.trial.modes":
                        noisy()
            sys.meta_path.insert(0, Watch())
        """)
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([trial(SHORT, tmp_path)]))
    assert isinstance(outcome, TrialResult), outcome
    monkeypatch.setenv("EXPLODES", "1")
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([trial(SHORT, tmp_path)]))
    assert isinstance(outcome, TrialFailure)
    assert outcome.kind == "crashed"
    place = f"{tmp_path / 'sitecustomize.py'}:10"
    assert outcome.reason == (
        f"its process ended with status 1: ZeroDivisionError: division by zero ({place})"
    )


TRACEBACK = """Traceback (most recent call last):
  File "/code/harness/trial/client.py", line 88, in step
    engine.step()
  File "/code/engines/engine.py", line 12, in step
    raise Refused(
        ~~~~~^^^
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f"{TRACEBACK}Refused: no", "Refused: no (/code/engines/engine.py:12)"),
        (f"{TRACEBACK}Refused", "Refused (/code/engines/engine.py:12)"),
        (f"{TRACEBACK}Refused: no\n\n  for", "Refused: no (/code/engines/engine.py:12); for"),
        (
            f"{TRACEBACK}Refused: no\n\nWhile that was handled:\n\n"
            f"{TRACEBACK.replace('12', '34')}KeyError: 1",
            "KeyError: 1 (/code/engines/engine.py:34)",
        ),
        (
            f"{TRACEBACK}Refused: no\nthe worker has died",
            "Refused: no (/code/engines/engine.py:12); the worker has died",
        ),
        (
            '  File "/code/engines/engine.py", line 3\n    def (\n        ^\nSyntaxError: no',
            "SyntaxError: no (/code/engines/engine.py:3)",
        ),
    ],
)
def test_an_exception_is_told_with_its_file_and_line(play, tmp_path, said, reason):
    (tmp_path / "said").write_text(said + "\n")
    outcome = only(
        LocalExecutor(TRIAL_SECONDS).run([play(f"{PREPARES}; cat {tmp_path}/said >&2; exit 1")])
    )
    assert isinstance(outcome, TrialFailure)
    assert outcome.reason == f"its process ended with status 1: {reason}"


@pytest.mark.slow
def test_an_overlapped_worker_can_be_left_after_some_steps(tmp_path):
    cell = msgspec.structs.replace(CELL, worker="process", output_processing="overlapped")
    asked = trial(ENDLESS, tmp_path, cell, mode="tracked", max_steps=5)
    outcome = only(LocalExecutor(TRIAL_SECONDS).run([asked]))
    assert isinstance(outcome, TrialResult), outcome
    assert outcome.metrics["num_steps"] == 5


def test_trials_with_slices_take_turns_and_each_waits_as_long_for_its_next(play, tmp_path):
    log = tmp_path / "log"

    def slices(name: str, count: int) -> Trial:
        one = f"read go; echo {name} >> {log}; echo paused; "
        script = f"read trial; echo ready; {one * count} read go; cat {{answer}}"
        return msgspec.structs.replace(play(script, name), slice_steps=1)

    outcomes = list(LocalExecutor(TRIAL_SECONDS).run([slices(name, 3) for name in "abc"]))
    assert [type(outcome) for outcome in outcomes] == [TrialResult] * 3
    assert log.read_text().split() == ["a", "b", "c"] * 3


@pytest.mark.slow
def test_one_that_ends_or_hangs_between_slices_does_not_stop_the_other(play, tmp_path):
    good = "read trial; echo ready; read go; echo paused; read go; echo paused; read go; "
    crashing = play("read trial; echo ready; read go; echo paused; read go; exit 7", "crashing")
    hanging = play("read trial; echo ready; read go; echo paused; read go; sleep 600", "hanging")
    trials = [play(good + "cat {answer}", "good"), crashing, hanging]
    sliced = [msgspec.structs.replace(each, slice_steps=1) for each in trials]
    _, outcomes = overstepped(
        lambda seconds: list(LocalExecutor(seconds).run(sliced)),
        lambda outcomes: [getattr(each, "kind", "") for each in outcomes].count("timed_out") == 1,
    )
    assert isinstance(outcomes[0], TrialResult)
    assert [outcome.kind for outcome in outcomes[1:]] == ["crashed", "timed_out"]


@pytest.mark.slow
def test_slices_change_nothing_but_when_it_runs(tmp_path):
    of = schedule([40] * 8)
    both = [trial(of, tmp_path), trial(of, tmp_path, slice_steps=10)]
    whole, sliced = LocalExecutor(TRIAL_SECONDS).run(both)
    outcomes = [
        whole,
        *LocalExecutor(TRIAL_SECONDS).run([trial(of, tmp_path, slice_steps=7)]),
        sliced,
    ]
    assert len({outcome.tokens_sha256 for outcome in outcomes}) == 1
    assert len({outcome.metrics["num_steps"] for outcome in outcomes}) == 1
    assert [len(outcome.step_host_ns) for outcome in outcomes] == [0, 40, 40]
    host = sum(sliced.step_host_ns) / 40 / 1e9
    assert host == pytest.approx(sliced.metrics["host_time_per_step"], rel=1e-9)


@pytest.mark.slow
def test_a_worker_or_a_trial_that_is_killed_while_it_measures_is_told_apart(tmp_path):
    cell = msgspec.structs.replace(CELL, worker="process")
    asked = TrialBatch(trials=[trial(ENDLESS, tmp_path, cell)])
    with (
        TrialInterpreter(asked, TRIAL_SECONDS) as first,
        TrialInterpreter(asked, TRIAL_SECONDS) as second,
    ):
        (one,), (other,) = first.trials, second.trials
        one.wait_until_ready()
        other.wait_until_ready()
        (worker,) = psutil.Process(one.pid).children()
        worker.kill()
        outcome = one.measure()
        (orphan,) = psutil.Process(other.pid).children()
        os.kill(other.pid, signal.SIGKILL)
        killed = other.measure()
    assert isinstance(outcome, TrialFailure)
    assert outcome.kind == "crashed"
    assert outcome.reason.endswith(f"the worker process (pid {worker.pid}) was killed by SIGKILL")
    assert isinstance(killed, TrialFailure)
    assert killed.kind == "killed"
    assert has_ended(orphan.pid)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["at once", "ready"])
def test_a_trial_and_its_worker_end_with_a_parent_that_is_killed(tmp_path, moment):
    cell = msgspec.structs.replace(CELL, worker="process")
    asked = tmp_path / "trial.json"
    asked.write_bytes(msgspec.json.encode(trial(ENDLESS, tmp_path, cell)))
    script = textwrap.dedent("""
        import sys, msgspec
        from pathlib import Path
        from harness.experiment.trial_process import TrialInterpreter
        from harness.trial.spec import Trial, TrialBatch
        asked = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Trial)
        with TrialInterpreter(TrialBatch(trials=[asked]), 600) as interpreter:
            (begun,) = interpreter.trials
            if sys.argv[2] == "ready":
                begun.wait_until_ready()
            print(begun.pid, flush=True)
            begun.measure()
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(asked), moment], cwd=ROOT, stdout=subprocess.PIPE
    ) as parent:
        pid = int(parent.stdout.readline())
        workers = psutil.Process(pid).children()
        assert len(workers) == (moment == "ready")
        parent.kill()
    for each in [pid, *(worker.pid for worker in workers)]:
        assert has_ended(each)
