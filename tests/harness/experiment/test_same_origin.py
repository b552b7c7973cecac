"""Trials of two machines, interpreters, codes or sets of packages never make one result."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from small import CELL, answer, plan, summary
from small import schedule as small_schedule

from harness.experiment.executor import Executor
from harness.experiment.plan import timing_round
from harness.experiment.run import Runner
from harness.experiment.same_origin import origin_differences
from harness.experiment.store import StoreError, trial_key
from harness.machine.describe import Machine
from harness.suites.version import needed
from harness.trial.origin import MEASURES, sources_sha256
from harness.trial.spec import Trial, TrialResult

ROOT = Path(__file__).parents[3]
HERE = {
    "machine": Machine(cpu_model="Made-up CPU", cores_usable=2, kernel="Linux 6.1"),
    "interpreter": "CPython 3.11.7 (one), collector generational, thresholds 700/10/10",
    "code_commit": "a" * 40,
    "code_sha256": "1" * 64,
    "dependencies": {"numpy": "2.4.6", "torch": "2.13.0"},
}
OTHERS = {
    "machine": (
        Machine(cpu_model="Another CPU", cores_usable=2, kernel="Linux 6.1"),
        "machine: cpu model (Made-up CPU, now Another CPU)",
    ),
    "interpreter": (
        "CPython 3.12.4 (two), collector generational",
        "interpreter (CPython 3.11.7 (one), now CPython 3.12.4 (two))",
    ),
    "code_commit": ("b" * 40, "code: commit (aaaaaaaaaa, now bbbbbbbbbb)"),
    "code_sha256": ("2" * 64, "code: SHA-256 of the sources (1111111111, now 2222222222)"),
    "dependencies": (
        {"numpy": "2.4.6", "torch": "2.14.0"},
        "dependency torch (2.13.0, now 2.14.0)",
    ),
}
CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "disabled")]
SCHEDULE = small_schedule([2] * 8)


class Somewhere(Executor):
    """Answers trials as a place does that can change."""

    def __init__(self) -> None:
        self.origin = dict(HERE)

    def batch_size(self, cells) -> int:
        return 2

    def run(self, trials: Sequence[Trial]) -> list[TrialResult]:
        metrics = {"host_time_per_step": 1.0, "request_throughput": 1.0}
        answers = [answer(trial, metrics) for trial in trials]
        return [msgspec.structs.replace(each, **self.origin) for each in answers]


def measured(**origin) -> TrialResult:
    asked = Trial(cell=CELL, schedule_path="", schedule_sha256="")
    return msgspec.structs.replace(Somewhere().run([asked])[0], **origin)


def files(folder: Path) -> dict[Path, bytes]:
    """Every file, but of a lock only that it is there: it says in which minute it was last held."""
    return {
        path: b"" if path.name == "writer.lock" else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def begun(tmp_path):
    """A runner whose experiment ``one`` has all its trials, and where they run."""
    somewhere = Somewhere()
    runner = Runner(tmp_path, {SCHEDULE.name: SCHEDULE}, somewhere)
    of = plan(CELLS, name="one", schedules=runner.schedule_hashes, rounds=3)
    runner.summarise(runner.run(of), command="gcbench compare")
    return runner, of, somewhere


@pytest.mark.parametrize("field", OTHERS)
def test_a_resume_elsewhere_is_refused_in_a_sentence_and_changes_nothing(begun, field):
    runner, of, somewhere = begun
    before = files(runner.output)
    somewhere.origin[field], words = OTHERS[field]
    with pytest.raises(StoreError, match=re.escape(words)) as refused:
        runner.run(of)
    assert "begin a new experiment without --resume" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert files(runner.output) == before


def test_one_stored_trial_of_another_machine_is_enough(begun):
    runner, of, _ = begun
    path = max((runner.output / "one" / "trials").iterdir())
    path.write_text(path.read_text().replace("Made-up CPU", "Another CPU"))
    with pytest.raises(StoreError, match=r"machine: cpu model \(Another CPU, now Made-up CPU\)"):
        runner.run(of)


def test_a_resume_at_the_same_place_goes_on(begun):
    runner, of, somewhere = begun
    somewhere.origin["code_commit"] += "+dirty"  # a file that decides no figure
    somewhere.origin["interpreter"] = HERE["interpreter"].replace("700", "50000")
    assert not runner.run(of).is_interrupted


@pytest.mark.parametrize("field", ["machine", "code_sha256", "dependencies"])
def test_what_an_older_gcbench_has_not_recorded_does_not_differ(field):
    unknown = {"machine": None, "code_sha256": "", "dependencies": {}}[field]
    old = measured(**{field: unknown})
    other = measured(**{field: OTHERS[field][0]})
    assert origin_differences(old, other) == origin_differences(other, old) == []


def test_cells_with_an_interpreter_of_their_own_may_differ_in_all_but_the_machine():
    ours = measured()
    theirs = measured(**{name: value for name, (value, _) in OTHERS.items() if name != "machine"})
    chosen = msgspec.structs.replace(theirs, cell=msgspec.structs.replace(CELL, python="/other"))
    assert len(origin_differences(ours, theirs)) == 3
    assert origin_differences(ours, chosen) == []
    away = msgspec.structs.replace(chosen, machine=OTHERS["machine"][0])
    assert origin_differences(ours, away) == [OTHERS["machine"][1]]


@pytest.mark.parametrize("field", OTHERS)
def test_mixed_trials_are_shown_and_not_judged(field):
    of, outcomes = plan(CELLS), {}
    for number in range(1, 8):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            (result,) = Somewhere().run([asked])
            if number == 7:
                result = msgspec.structs.replace(result, **{field: OTHERS[field][0]})
            outcomes[trial_key(number, turn.place, turn.cell, "timing")] = result
    result = summary(of, outcomes)
    said = [why for why in result.not_compared if why.startswith("Trials")]
    # Of two commits with the same sources one figure is as good as the other.
    is_mixed = field != "code_commit"
    assert bool(said) == is_mixed
    assert bool(result.comparisons) != is_mixed
    assert [cell.samples for cell in result.cells] == [7, 7]
    assert all(OTHERS[field][1] in sentence for sentence in said)


def test_the_hash_of_the_sources_covers_all_that_a_trial_imports():
    hashed = [ROOT / part for part in MEASURES]
    for name in needed(ROOT, ["harness.trial.process"]):
        path = ROOT.joinpath(*name.split("."))
        path = path if path.is_dir() else path.with_suffix(".py")
        is_package_of_parts = (path / "__init__.py").exists()
        covered = any(path == part or part in path.parents for part in hashed)
        assert covered or is_package_of_parts, path


def test_the_hash_of_the_sources_sees_each_change_of_an_engine_and_no_other(tmp_path):
    engine = tmp_path / "engines"
    (engine / "inner").mkdir(parents=True)
    (engine / "inner" / "a.py").write_text("a = 1\n")
    (engine / "profile.toml").write_text("a = 1\n")
    first = sources_sha256(engine)
    (engine / "README.md").write_text("words\n")
    (engine / "inner" / "a.pyc").write_bytes(b"compiled")
    assert sources_sha256(engine) == first
    found = {first}
    (engine / "profile.toml").write_text("a = 2\n")
    found.add(sources_sha256(engine))
    (engine / "inner" / "a.py").rename(engine / "a.py")
    found.add(sources_sha256(engine))
    (engine / "b.py").touch()
    found.add(sources_sha256(engine))
    assert len(found) == 4
