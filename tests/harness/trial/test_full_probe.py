"""A probe without room for all collections makes a trial invalid, and no try is wasted on it."""

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from small import CELL, Calls, MemoryStore, answer, plan, schedule, summary, trial

from engines.builtin.engine import Engine
from engines.protocol import StepOutput
from harness.experiment.rounds import Precision, Rounds
from harness.trial.run import run_trial
from harness.trial.spec import Trial, TrialResult

MANY = msgspec.structs.replace(CELL, gc="disabled")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> TrialResult:
    """A real trial of an engine that collects a hundred times in each step."""
    folder: Path = tmp_path_factory.mktemp("full")
    healthy = Engine.step

    def step(engine: Engine) -> StepOutput:
        for _ in range(100):
            gc.collect(0)
        return healthy(engine)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "step", step)
        return run_trial(trial(schedule([700] * 8), folder, MANY), lambda word: None)


@pytest.mark.slow
@pytest.mark.landing
def test_a_trial_whose_probe_was_full_is_invalid_and_says_by_how_much(full: TrialResult) -> None:
    (process,) = full.processes
    lost = process.probe_dropped
    assert 0 < lost == sum(process.collections) - 65_536
    assert full.recurs
    assert full.invalid == (
        f"the probe in the engine process has room for 65,536 collections and {lost:,} more came, "
        "so pauses are missing: ask for fewer requests, shorter outputs or a higher threshold"
    )


@pytest.mark.slow
def test_another_try_would_be_full_too_so_there_is_none(full: TrialResult) -> None:
    asked: list[Trial] = []

    def measure(trials: Sequence[Trial]) -> Iterator[TrialResult]:
        for each in trials:
            asked.append(each)
            is_full = each.cell == MANY
            fields = {"invalid": full.invalid, "recurs": full.recurs} if is_full else {}
            made = answer(each, {"host_time_per_step": 1.0 + each.seed % 97 / 1e4})
            yield msgspec.structs.replace(made, **fields)

    of = plan([CELL, MANY], rounds=3)
    under_way = Rounds(of, MemoryStore(), Calls(measure), lambda turn, outcome: None)
    under_way.run(lambda outcomes: summary(of, outcomes), Precision(0, 0))
    assert len(asked) == 1 + 2 * of.rounds  # the first of all is thrown away
    assert under_way.repeated == 0
    result = summary(of, under_way.outcomes)
    assert [cell.id for cell in result.cells] == [CELL.gc]
    assert f"3 trials left out: {full.invalid}." in result.notes
