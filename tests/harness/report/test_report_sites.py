"""Lines whose objects make the collector run, with a call path that is long, short or not known."""

import pytest

from harness.collector.sites import AllocationSite, CollectionSites
from harness.explain.result import SitesBody
from harness.report.sites import sites_answer, sites_tables

STEP, LOOP, MAIN = ("engine/step.py", 7), ("engine/loop.py", 3), ("main.py", 1)


def body(path: list[tuple[str, int]], retained: int = 0) -> SitesBody:
    file, line = STEP
    site = AllocationSite(
        file=file,
        line=line,
        type="list",
        share=0.5,
        share_error=0.1,
        pause_share=0.4,
        promoted=3,
        retained=retained,
        path=path,
    )
    found = CollectionSites(collections=(9, 1, 0), young=100, sites=[site])
    return SitesBody(label="this code", num_steps=20, roots=[], found=found)


@pytest.mark.parametrize(
    ("path", "caller"), [([MAIN, LOOP, STEP], ["  from engine/loop.py:3"]), ([STEP], []), ([], [])]
)
def test_the_nearest_caller_is_named_where_one_is_known(path, caller):
    lines, prices = sites_tables(body(path), 10)
    ((row,),) = lines.groups
    assert row[0].splitlines() == ["engine/step.py:7", "  list", *caller]
    assert row[1:] == ("50.0 %", "40.0 %", "5", "3 to 7", "3", "0")
    assert not prices.groups


def test_what_is_still_there_after_the_last_step_is_a_sentence_of_its_own():
    said = "▲ 20 objects of engine/step.py:7 were still there after the last step."
    assert any(each.startswith(said) for each in sites_answer(body([], retained=20)))
    assert not any("▲" in each for each in sites_answer(body([], retained=19)))
