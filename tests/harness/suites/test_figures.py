"""From planted trials to asv's figures: nothing measured is no number, and never 0."""

import math
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from harness.axes import Cell
from harness.experiment.plan import without_collector
from harness.experiment.rounds import Outcomes
from harness.experiment.run import PlanRun
from harness.experiment.store import RunStore, trial_key, write_rows
from harness.suites.figures import asv_figure, figures, pooled_itl_p99
from harness.suites.grid import CHURN, DECODE, tracked
from harness.suites.measure import SuiteRun
from harness.suites.track import look_ups, one_sentence
from harness.trial.spec import Mode, Trial, TrialFailure, TrialResult

LISTS, FLAT = "list_of_lists/per_request", "flat_arrays/columnar"
ALONE = {"device": "null"}
GEN0 = tracked("gc_collections_gen0", ALONE, handoff=(LISTS, FLAT), workload=(DECODE,))
PEAK = tracked("tracked_peak_per_step", ALONE, handoff=(LISTS, FLAT), workload=(DECODE,))
SECONDS = tracked("seconds_per_request", {}, handoff=(LISTS,), workload=(DECODE,))
AT_LISTS, AT_FLAT = GEN0.points()
SUITE = "harness.suites.collections"
SAME = {"tokens_sha256": "same", "text_sha256": "same"}

Answer = dict[str, float | None] | TrialFailure | str


def planted(
    folder: Path, answers: Sequence[tuple[Mode, int, Cell, Answer]], **others: str
) -> SuiteRun:
    """Trials of a commit in /commit: (mode, round, cell, metrics or why there are none).

    ``others``: fields of all results but the first.
    """
    outcomes: Outcomes = {}
    cells = [_of_a_commit(cell) for _, _, cell, _ in answers]
    for index, ((mode, number, _, answer), cell) in enumerate(zip(answers, cells, strict=True)):
        asked = Trial(cell=cell, schedule_path="", schedule_sha256="", mode=mode)
        outcome: TrialResult | TrialFailure
        match answer:
            case TrialFailure():
                outcome = msgspec.structs.replace(answer, cell=cell, mode=mode)
            case str():
                outcome = small.answer(asked, {}, invalid=answer)
            case _:
                outcome = small.answer(asked, answer, **SAME | (others if index else {}))
        outcomes[trial_key(number, index, cell, mode)] = outcome
    plan = small.plan(
        list(dict.fromkeys(cells)), decide=[], schedules={DECODE: "hash", CHURN: "hash"}
    )
    store = RunStore(folder, "planted")
    store.create()
    ran = PlanRun(plan, outcomes, [], store, is_interrupted=False)
    return SuiteRun(small.summary(plan, outcomes), ran)


def crash(reason: str, kind: Any = "crashed") -> TrialFailure:
    return TrialFailure(cell=small.CELL, mode="counts", seed=0, kind=kind, reason=reason)


def _of_a_commit(cell: Cell) -> Cell:
    return msgspec.structs.replace(cell, release="/commit")


def test_an_exact_metric_is_one_number_and_0_is_one_too(tmp_path: Path) -> None:
    """The trial that looked on stands for every collector policy, the one that counted for one."""
    lists, flat = (GEN0.cell(point) for point in GEN0.points())
    gave = figures(
        [GEN0, PEAK],
        [
            planted(
                tmp_path,
                [
                    ("counts", 0, lists, {"gc_collections_gen0": 917.0}),
                    ("counts", 0, flat, {"gc_collections_gen0": 0.0}),
                    ("tracked", 0, without_collector(lists), {"tracked_peak_per_step": 4032.0}),
                    ("tracked", 0, without_collector(flat), {"tracked_peak_per_step": None}),
                ],
            )
        ],
    )
    assert gave["gc_collections_gen0", AT_LISTS] == 917.0
    assert gave["gc_collections_gen0", AT_FLAT] == 0.0
    assert gave["tracked_peak_per_step", AT_LISTS] == 4032.0
    assert (
        gave["tracked_peak_per_step", AT_FLAT].reason
        == "no trial of this cell gave tracked_peak_per_step"
    )


def test_rounds_are_samples_and_those_that_gave_none_are_not_there(tmp_path: Path) -> None:
    cell = SECONDS.cell(SECONDS.points()[0])
    rounds: list[Answer] = [
        {"seconds_per_request": 0.25},
        {"seconds_per_request": None},
        "the machine was too busy",
        {"seconds_per_request": 0.5},
        crash("it fell over"),
        {"seconds_per_request": 0.75},
    ]
    answers: list[tuple[Mode, int, Cell, Answer]] = [
        ("timing", number, cell, answer) for number, answer in enumerate(rounds, start=1)
    ]
    gave = figures([SECONDS], [planted(tmp_path, answers)])
    expected = {"samples": [0.25, 0.5, 0.75], "number": 1}
    assert gave == {("seconds_per_request", SECONDS.points()[0]): expected}


@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_a_figure_is_made_of_the_samples_that_there_are(samples: list[float | None]) -> None:
    known = [sample for sample in samples if sample is not None]
    match asv_figure(samples):
        case None:
            assert not known
        case float(value):
            assert [value] == known
        case sampled:
            assert sampled == {"samples": known, "number": 1}
            assert len(known) > 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (crash("killed by SIGKILL", "killed"), "killed by SIGKILL"),
        ("modelled waits overran", "modelled waits overran"),
        ({}, "no trial of this cell gave gc_collections_gen0"),
    ],
)
def test_a_cell_without_a_figure_is_not_a_number_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: Answer, why: str
) -> None:
    """asv shows n/a for it, and the words with --show-stderr; it pickles what setup_cache gave."""
    lists, flat = (GEN0.cell(point) for point in GEN0.points())
    counted: Answer = {"gc_collections_gen0": 917.0}
    measured = planted(tmp_path, [("counts", 0, lists, counted), ("counts", 0, flat, answer)])
    cache = pickle.loads(pickle.dumps(figures([GEN0], [measured])))
    track = look_ups(SUITE, [GEN0])["track_gc_collections_gen0"]
    assert track(cache, *AT_LISTS) == 917.0
    assert capsys.readouterr().out == ""
    shown = track(cache, *AT_FLAT)
    assert isinstance(shown, float)
    assert math.isnan(shown)
    assert capsys.readouterr().out.strip() == why


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            crash("its process ended with status 1: ImportError: cannot import name 'Launch'"),
            "no cell could be measured: its process ended with status 1: ImportError: cannot imp",
        ),
        (
            crash("--release /commit: no engines/builtin there", "refused"),
            "no cell could be measured: --release /commit: no engines/builtin there",
        ),
        ("waits overran", "no cell could be measured: waits overran"),
    ],
)
def test_nothing_measured_at_all_is_an_error(tmp_path: Path, answer: Answer, sentence: str) -> None:
    @one_sentence
    def setup_cache() -> Any:
        return figures([GEN0], [planted(tmp_path, [("counts", 0, GEN0.cell(AT_LISTS), answer)])])

    with pytest.raises(SystemExit) as ended:
        setup_cache()
    assert str(ended.value).startswith(sentence)


@pytest.mark.parametrize("what", ["tokens", "text"])
def test_cells_that_did_other_work_give_no_figures_and_another_workload_does(
    tmp_path: Path, what: str
) -> None:
    """The first cell of the other workload is alone there, so that it agrees with all."""
    table = tracked("gc_collections_gen0", ALONE, handoff=(LISTS, FLAT), workload=(DECODE, CHURN))
    counted: Answer = {"gc_collections_gen0": 1.0}
    cells = {point: table.cell(point) for point in table.points()}
    in_decode = [point for point, cell in cells.items() if cell.workload == DECODE]
    (alone, _) = (point for point in cells if point not in in_decode)
    answers: list[tuple[Mode, int, Cell, Answer]] = [
        ("counts", 0, cells[point], counted) for point in (*in_decode, alone)
    ]
    gave = figures([table], [planted(tmp_path, answers, **{f"{what}_sha256": "others"})])
    for point in in_decode:
        words = str(gave["gc_collections_gen0", point])
        assert re.search(rf"other {what} than .*list_of_lists.*none is taken of this work", words)
    assert gave["gc_collections_gen0", alone] == 1.0


def test_itl_p99_is_of_all_rounds_steps_and_none_below_662(tmp_path: Path) -> None:
    """One round has too few; the oracle is NumPy over the worst gaps put together."""
    cell = SECONDS.cell(SECONDS.points()[0])
    answers: list[tuple[Mode, int, Cell, Answer]] = [
        ("timing", 1, cell, {}),
        ("timing", 2, cell, {}),
        ("timing", 3, cell, "overran"),
        ("timing", 4, cell, {}),
        ("timing", 5, cell, crash("it fell over")),
    ]
    measured = planted(tmp_path, answers)
    rng = np.random.default_rng(0)
    gaps = {}
    for key, outcome in measured.ran.outcomes.items():
        if isinstance(outcome, TrialResult):
            gaps[key] = np.append(rng.integers(1, 10**9, 331), 0)  # the first step has no gap
            path = measured.ran.store.folder / "rows" / f"{key}-steps.parquet"
            write_rows(path, {"worst_gap_ns": gaps[key]})
    usable = [gaps[key] for key in gaps if key.round in (1, 2, 4)]
    pooled = np.concatenate(usable)
    expected = np.percentile(pooled[pooled > 0], 99) / 1e9
    assert pooled_itl_p99(measured, cell) == pytest.approx(expected, rel=1e-12)
    first = {key: outcome for key, outcome in measured.ran.outcomes.items() if key.round == 1}
    for outcomes in (first, {}):
        fewer = measured._replace(ran=measured.ran._replace(outcomes=outcomes))
        assert pooled_itl_p99(fewer, cell) is None
