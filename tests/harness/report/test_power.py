"""What a run can detect, and why it has settled nothing, in figures that somebody can use."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, answer, plan, summary

from harness.experiment.plan import timing_round
from harness.experiment.result import ExperimentResult
from harness.experiment.store import trial_key
from harness.machine.other_work import OtherWork, Surroundings
from harness.report.header import header
from harness.report.power import detects, settles_nothing, surroundings_words, what_it_takes
from harness.report.summary import verdict_tables
from harness.statistics.paired_ratio import MIN_ROUNDS, minimum_detectable_effect
from harness.statistics.power import MOST_ROUNDS, rounds_needed
from harness.trial.spec import Trial

QUIET = OtherWork(seconds=60, cores=2, others=0.05, stolen=0)
BUSY = OtherWork(seconds=60, cores=2, others=1.6, stolen=0.031)
CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "freeze", "disabled")]


def experiment(noise: float, num_rounds: int = 7, slower: float = 0.0) -> ExperimentResult:
    """Three cells that differ by accidents alone, or the last by a share."""
    of, outcomes = plan(CELLS, rounds=num_rounds), {}
    for number in range(1, num_rounds + 1):
        for turn in timing_round(of, number):
            asked = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            wobble = 1 + noise * ((7919 * number + 104729 * turn.place) % 13 - 6) / 6
            seconds = wobble * (1 + slower * (turn.cell == CELLS[2]))
            key = trial_key(number, turn.place, turn.cell, "timing")
            outcomes[key] = answer(asked, {"host_time_per_step": seconds})
    return summary(of, outcomes)


@given(st.floats(0, 1e6), st.integers(3, 500), st.floats(0.005, 0.1))
def test_no_figure_is_ever_beyond_what_people_can_use(mde, rounds, tolerance):
    said = f"{detects(mde)}, {what_it_takes(rounds, mde, tolerance)}"
    percents = [float(found.replace(",", "")) for found in re.findall(r"([\d.,]+) %", said)]
    assert max(percents) <= 50
    needed = re.findall(r"takes about ([\d,]+)", said)
    assert all(int(number.replace(",", "")) <= MOST_ROUNDS for number in needed)


def test_a_machine_on_which_nothing_can_be_found_is_said_to_be_one():
    assert detects(11.898) == "> ±50 %"
    assert detects(0.129) == "±12.9 %"
    assert what_it_takes(7, 11.898, 0.02) == (
        "7 rounds detect no change below 50 %; detecting 2 % takes more than 200, so a quieter "
        "machine helps and more rounds do not"
    )
    assert what_it_takes(7, 0.129, 0.02).startswith("7 rounds detect changes from 12.9 %; detect")
    assert (
        what_it_takes(7, 0.041, 0.02)
        == "7 rounds detect changes from 4.1 %; detecting 2 % takes about 13"
    )
    result = experiment(0.9)
    (table,) = verdict_tables(result)
    assert {row[-1] for group in table.groups for row in group} == {"> ±50 %"}


@given(st.floats(0.002, 0.3), st.integers(7, 60), st.floats(0.005, 0.1))
def test_so_many_rounds_do_detect_the_change(sd_log, rounds, change):
    needed = rounds_needed(change, rounds, minimum_detectable_effect(sd_log, rounds))
    assert needed >= MIN_ROUNDS
    if needed <= MOST_ROUNDS:
        assert minimum_detectable_effect(sd_log, needed) <= change * 1.0001
    if needed > MIN_ROUNDS:
        assert minimum_detectable_effect(sd_log, needed - 1) > change * 0.9999


def test_a_run_that_settles_nothing_says_so_first_and_why():
    result = msgspec.structs.replace(
        experiment(0.3), surroundings=Surroundings(before=BUSY, during=BUSY, waited=0.12)
    )
    assert {comparison.verdict for comparison in result.comparisons} == {"inconclusive"}
    (first, attention), (second, surroundings), *_ = header(result)
    assert (first, second) == ("attention", "surroundings")
    assert attention.startswith(
        "this run settles nothing about times: both comparisons are inconclusive; "
    )
    assert re.search(r"trials of one cell spread by \d+\.\d % \(standard deviation\)", attention)
    assert "--wait" in attention
    assert surroundings == (
        "busy: other programs used 1.6 of 2 cores; other guests stole 3.1 % of the time; trials "
        "waited 12.0 % of their time for a core"
    )


def test_a_run_that_has_told_something_does_not():
    told = experiment(0.005, slower=0.5)
    assert "worse" in {comparison.verdict for comparison in told.comparisons}
    busy = msgspec.structs.replace(told, surroundings=Surroundings(before=BUSY, during=BUSY))
    assert settles_nothing(busy) == ""
    assert dict(header(busy))["surroundings"].startswith("busy: ")
    few = settles_nothing(experiment(0.005, num_rounds=5))
    assert few.startswith("no verdict on 2 cells: a verdict takes 7 rounds, this run has 5; ")


@pytest.mark.parametrize(
    ("during", "waited", "is_busy"),
    [(QUIET, None, False), (QUIET, 0.01, False), (QUIET, 0.05, True), (BUSY, 0.0, True)],
)
def test_a_quiet_machine_is_called_quiet(during, waited, is_busy):
    surroundings = Surroundings(before=BUSY, during=during, waited=waited)
    assert surroundings.is_busy == is_busy
    assert surroundings_words(surroundings).startswith("busy: " if is_busy else "quiet: ")
