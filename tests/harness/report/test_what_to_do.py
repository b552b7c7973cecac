"""The sentence of advice on each kind of result."""

from typing import get_args

import msgspec
import pytest
from test_pages import MAIN_JOB
from test_report_nightly import NIGHTS, night

from harness.experiment.store import load_experiment
from harness.render.csv_text import report_csv
from harness.render.report import Report
from harness.render.table import PlainTable
from harness.report.what_to_do import (
    GATE_ADVICE,
    NOTHING_TO_DO,
    experiment_advice,
    history_advice,
    night_advice,
)
from harness.statistics.verdict import Verdict
from harness.tracking.gate.result import GateVerdict
from harness.tracking.history_result import HistoryResult, Read, SeriesChange


def test_each_verdict_of_a_gate_has_advice():
    literal, *others = get_args(GateVerdict)
    known = {*get_args(literal), *others} if get_args(literal) else {literal, *others}
    assert set(GATE_ADVICE) == known >= set(get_args(Verdict))


@pytest.fixture(scope="module")
def job():
    return load_experiment(MAIN_JOB)


def judged(job, **verdicts):
    """The job with other verdicts, by what the candidate's name ends with."""
    found = [
        msgspec.structs.replace(each, verdict=verdict)
        for each in job.comparisons
        for ending, verdict in verdicts.items()
        if each.candidate.endswith(ending)
    ]
    return msgspec.structs.replace(job, comparisons=found)


def test_the_best_cell_is_taken_with_those_as_good(job):
    assert experiment_advice(job) == (
        "Take flat_arrays · columnar · freeze, or flat_arrays · columnar · default, which cannot "
        "be told from it. The device is modelled, so expect a smaller gain on a real one."
    )


@pytest.mark.parametrize(
    ("verdicts", "advice"),
    [
        ({"default": "worse", "freeze": "same"}, "nothing that was tried is better."),
        ({"default": "inconclusive", "freeze": "same"}, "and not all settled."),
        ({"default": "inconclusive", "freeze": "inconclusive"}, "or measured again."),
    ],
)
def test_without_a_better_cell_the_baseline_is_kept_or_nothing_decided(job, verdicts, advice):
    said = experiment_advice(judged(job, **verdicts))
    assert said.endswith(advice)
    assert said.startswith("Keep list_of_lists · per_request · default") != ("again" in advice)


def test_an_unfinished_run_decides_nothing(job):
    assert "Do not decide" in experiment_advice(msgspec.structs.replace(job, is_complete=False))


def series(metric: str, verdict: str, after: float) -> SeriesChange:
    return SeriesChange(
        machine="box",
        environment="py",
        series=metric,
        suite="",
        metric=metric,
        unit="s",
        direction="lower",
        kind="timing",
        parameters={},
        base="a" * 40,
        head="b" * 40,
        before=1.0,
        after=after,
        verdict=verdict,
        suspects=[],
    )


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        (
            [("one", "worse", 1.1), ("two", "worse", 1.5)],
            "Look first at two: +50.0 % with bbbbbbbb.",
        ),
        ([("one", "better", 0.5)], NOTHING_TO_DO),
        ([("one", "suspicious", 1.5)], f"{NOTHING_TO_DO} Measure again what is suspicious"),
        ([], ""),
    ],
)
def test_of_a_history_the_worst_is_named(changes, advice):
    result = HistoryResult(
        name="x",
        command="",
        between=None,
        read=Read(),
        changes=[series(*each) for each in changes],
        problems=[],
    )
    assert history_advice(result).startswith(advice)
    assert bool(history_advice(result)) == bool(advice)


def test_of_a_night_the_worst_is_named_or_there_is_nothing_to_do():
    assert night_advice(NIGHTS["one of many, and another"]) == (
        "Look first at 078ebfa807, which made num_preemptions worse. Mend it, or acknowledge it in "
        "triage.toml."
    )
    assert night_advice(NIGHTS["quiet"]) == NOTHING_TO_DO
    jumped = NIGHTS["one of many, and another"].alerts[0].changes
    assert night_advice(night(suspicious=jumped)).endswith("is measured again tonight.")
    assert "why not everything was measured" in night_advice(night(is_complete=False))


def test_the_tables_as_csv():
    table = PlainTable("a, b", ("series", "before\n(s)"), [[("x", "1,024")], [("y", '"')]])
    text = report_csv(Report("gcbench", "x", "answer", tables=[table], more=[table]))
    one = '"a, b"\nseries,before (s)\nx,"1,024"\ny,""""\n'
    assert text == f"{one}\n{one}"
