"""What asv writes today, read by asv's reader and by ours."""

from datetime import date

import pytest
from asv_project import COSTS, make, measure_here
from test_history import compare_with_asv

from harness.tracking import history
from harness.tracking.changes import changes
from harness.tracking.judge_figures import judge_all
from harness.tracking.triage import NOTHING_SAID

pytest.importorskip("asv")


@pytest.mark.slow
@pytest.mark.landing
def test_what_asv_writes_today_is_read_as_asv_reads_it(tmp_path):
    commits = make(tmp_path / "toy", environments=1)
    for commit in commits[1:]:
        measure_here(tmp_path / "toy", commit, "box-a")
    assert compare_with_asv(tmp_path / "toy" / "results") == 28
    found = history.load_history(tmp_path / "toy" / "asv.conf.json")
    judged = judge_all(found.figures, {}, NOTHING_SAID, date(2026, 1, 30)).verdicts
    verdicts = changes(found.figures, judged, *commits[1:]).set_index("series")["verdict"]
    assert COSTS[1] < COSTS[2]
    assert verdicts["suite.track_throughput('lists', 8)"] == "insufficient"
    assert verdicts["suite.Collections.track_gen0('default')"] == "worse"
    assert verdicts["suite.Collections.track_gen0('broken')"] == "missing"
