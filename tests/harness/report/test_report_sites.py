"""What `gcbench sites` shows of lines whose call path is long, short or not known."""

import pytest

from harness.collector.sites import AllocationSite, CollectionSites
from harness.explain.sites import SitesResult
from harness.machine.describe import Machine
from harness.report.sites import prices_table, sites_answer, sites_table
from harness.result.result import ReplayedWorkload

STEP, LOOP, MAIN = ("engine/step.py", 7), ("engine/loop.py", 3), ("main.py", 1)


def result(path: list[tuple[str, int]], retained: int = 0) -> SitesResult:
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
    workload = ReplayedWorkload(name="small", hash="", num_requests=1)
    return SitesResult(
        name="",
        command="",
        machine=Machine(),
        workload=workload,
        axes={},
        num_steps=20,
        roots=[],
        found=found,
    )


@pytest.mark.parametrize(
    ("path", "caller"), [([MAIN, LOOP, STEP], ["  from engine/loop.py:3"]), ([STEP], []), ([], [])]
)
def test_the_nearest_caller_is_named_where_one_is_known(path, caller):
    ((row,),) = sites_table(result(path), 10).groups
    assert row[0].splitlines() == ["engine/step.py:7", "  list", *caller]
    assert row[1:] == ("50.0 %", "40.0 %", "5", "3 to 7", "3", "0")
    assert not prices_table(result(path), 10).groups


def test_what_is_still_there_after_the_last_step_is_a_sentence_of_its_own():
    said = "▲ 20 objects of engine/step.py:7 were still there after the last step."
    assert any(each.startswith(said) for each in sites_answer(result([], retained=20)))
    assert not any("▲" in each for each in sites_answer(result([], retained=19)))
