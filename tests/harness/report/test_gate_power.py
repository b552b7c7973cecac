"""What a gate's report says of what it can detect, how soon, and of a busy machine."""

import msgspec
import pytest
from gate_results import LISTS, cell, exact, result, timing

from harness.machine.other_work import OtherWork, Surroundings
from harness.render.markdown import report_markdown
from harness.report.gate import describe_gate
from harness.tracking.gate.words import conclude_gate

QUIET = OtherWork(seconds=30, cores=2, others=0.05, stolen=0)
BUSY = OtherWork(seconds=30, cores=2, others=1.3, stolen=0)


def gated(half_width: float, during: OtherWork = QUIET, verdict: str = "inconclusive"):
    """31 rounds in 31 seconds that detect twice the half width."""
    timed = timing(0.016, 0.012, "", half_width=half_width, rounds=31)
    made = result([cell(LISTS, verdict, exact(), timed)])
    surroundings = Surroundings(before=during, during=during)
    return msgspec.structs.replace(
        made, verdict=verdict, timed_seconds=31.0, surroundings=surroundings
    )


@pytest.mark.parametrize(
    ("half_width", "words"),
    [
        (0.003, "±0.60 % in 31 rounds, 0.5 min; ±3.0 % takes about 0.1 min"),
        (0.021, "±4.2 % in 31 rounds, 0.5 min; ±3.0 % takes about 0.9 min"),
        (0.2, "±40.0 % in 31 rounds, 0.5 min; ±3.0 % takes more than 200 rounds"),
        (4.0, "> ±50 % in 31 rounds, 0.5 min; ±3.0 % takes more than 200 rounds"),
    ],
)
def test_beside_the_power_stands_how_long_it_takes(half_width, words):
    assert dict(describe_gate(gated(half_width)).sure)["detects"] == words


def test_a_gate_that_timed_nothing_has_no_power():
    counted = msgspec.structs.replace(result([cell(LISTS, "same", exact())]), timed_seconds=0.0)
    assert "detects" not in dict(describe_gate(counted).sure)


def test_an_undecided_time_on_a_busy_machine_is_said_first():
    report = describe_gate(gated(0.021, BUSY))
    assert report.attention.startswith(
        "This run settles nothing about times, and the machine was busy"
    )
    assert report_markdown(report).index("**Attention**") < 200
    for told in (gated(0.021), gated(0.003, BUSY, verdict="same")):
        assert not describe_gate(told).attention


def test_what_could_not_be_found_is_capped():
    said = next(line for line in conclude_gate(gated(4.0).cells) if "undecided" in line)
    assert "which detect no change below 50.0 %: measure on a quieter machine" in said
