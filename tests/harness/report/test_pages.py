"""Pages, pictures and pivots of stored results."""

import re
from pathlib import Path

import msgspec
import pytest
from gate_results import LISTS, cell, exact, result, timing
from golden_text import NASTY
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.result import ExperimentResult
from harness.experiment.store import load_experiment, trial_key
from harness.render.page import report_page
from harness.report.experiment_image import experiment_image
from harness.report.gate_image import gate_image
from harness.report.kinds import describe_result
from harness.report.pivot import pivot_tables, pivots
from harness.report.steps_image import samples_image
from harness.trial.spec import Trial

MAIN_JOB = Path(__file__).parents[3] / "results" / "published" / "main-job.json"


@pytest.fixture(scope="module")
def main_job() -> ExperimentResult:
    return load_experiment(MAIN_JOB)


def experiment(*changes: dict[str, str | int]) -> ExperimentResult:
    """Cells that differ in host time by their place alone."""
    cells = [msgspec.structs.replace(CELL, **each) for each in changes]
    of, outcomes = plan(cells, rounds=7), {}
    for number in range(1, 8):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            seconds = 1 + 0.1 * cells.index(msgspec.structs.replace(turn.cell, copy=0))
            wobble = 1 + 0.001 * ((7919 * number + 104729 * turn.place) % 13)
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(asked, {"host_time_per_step": seconds * wobble})
    return summary(of, outcomes)


def test_a_page_is_one_small_file_that_asks_nobody(main_job, tmp_path):
    page = report_page(describe_result(main_job, tmp_path)).decode()
    assert len(page.encode()) < 1_000_000
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert not re.search(r"@import|url\(", page)
    assert "+77.4 %" in page
    assert page.count("<figure>") == 2, "no rows are stored beside it, so there is no timeline"
    assert "### gcbench compare" in page


def test_nothing_that_people_name_becomes_markup(main_job, tmp_path):
    named = msgspec.structs.replace(main_job, name=NASTY, notes=[NASTY], command=NASTY)
    page = report_page(describe_result(named, tmp_path)).decode()
    head = msgspec.structs.replace(GATE.head, subject=NASTY)
    page += report_page(
        describe_result(msgspec.structs.replace(GATE, head=head, notes=[NASTY]))
    ).decode()
    assert "onerror=alert(1)" in page
    assert "<img src=x" not in page
    assert page.count("</details>") == 0


GATE = result(
    [cell(LISTS, "worse", exact(tracked_peak_per_step=3_085.0), timing(0.071, 0.032, "both"))]
)


@pytest.mark.slow
def test_pictures_are_drawn_and_equal_results_give_equal_ones(main_job):
    for draw, of in ((experiment_image, main_job), (gate_image, GATE), (samples_image, main_job)):
        assert draw(of, ".png").startswith(b"\x89PNG")
        assert draw(of, ".svg") == draw(of, ".svg")


def test_without_a_figure_there_is_no_picture(main_job):
    empty = msgspec.structs.replace(main_job, cells=[], comparisons=[])
    with pytest.raises(ValueError, match="nothing was measured"):
        experiment_image(empty, ".png")
    with pytest.raises(ValueError, match="no count changed"):
        gate_image(result(), ".png")


def test_the_last_axis_that_leaves_no_gap_goes_across(main_job):
    ((pivot, comparisons),) = pivots(main_job)
    assert pivot.columns == ["default", "freeze"]
    assert next(iter(pivot.rows)) == "list_of_lists · per_request"
    assert len(comparisons) == 9
    of = [{"gc": gc, "batch_size": size} for gc in ("default", "freeze") for size in (8, 16)]
    ((pivot, _),) = pivots(experiment(*of))
    assert (pivot.columns, list(pivot.rows)) == (["8", "16"], ["default", "freeze"])
    ((pivot, _),) = pivots(experiment(*of[:3]))
    assert (pivot.columns, list(pivot.rows)) == (["8", "16"], ["default", "freeze"])


def test_a_cell_of_a_pivot_is_the_change_of_its_own_comparison(main_job):
    (table,) = pivot_tables(main_job)
    shown = {
        f"{row[0]} · {column}": text
        for row in table.groups[0]
        for column, text in zip(table.columns[1:], row[1:], strict=True)
    }
    assert shown.pop("list_of_lists · per_request · default") == "baseline"
    assert len(shown) == len(main_job.comparisons)
    for each in main_job.comparisons:
        sign = {"better": "▲", "worse": "▼", "same": "=", "inconclusive": "?"}[each.verdict]
        assert shown[each.candidate] == f"{sign} {100 * (each.ratio - 1):+.1f} %"


def test_where_one_axis_varies_cells_are_listed_with_their_intervals():
    (table,) = pivot_tables(experiment({"gc": "default"}, {"gc": "freeze"}))
    ((row,),) = table.groups
    assert (row[0], row[-1]) == ("freeze", "▼ worse")
    assert " to " in row[2]


def test_what_could_not_be_compared_has_no_sign(main_job):
    fewer = msgspec.structs.replace(main_job, comparisons=main_job.comparisons[1:])
    (table,) = pivot_tables(fewer)
    assert table.groups[0][0] == ("list_of_lists · per_request", "baseline", "no verdict")
