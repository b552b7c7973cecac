"""Sums of what comes and goes only grow, have one series each, and have bounded room."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from harness.probed.ended import EndedImages
from harness.probed.exposition import ProbedMetrics
from harness.probed.result import GenerationTotals, ProbedProcess
from harness.probed.series import BOUNDS_SECONDS, SUMS, CounterSeries

NAMES = st.sampled_from(["app.py", "ForkPoolWorker-1", "ForkPoolWorker-27:3", "Process-9"])
ROLES = st.sampled_from(["fork", "program"])
ONE = np.ones((len(SUMS), 3), np.int64)
NONE = np.zeros((3, len(BOUNDS_SECONDS) + 1), np.int64)


def samples(metrics: ProbedMetrics) -> dict[tuple[str, ...], float]:
    """Of gcbench's families; each of them comes once."""
    text = generate_latest(metrics).decode()
    found = [
        ((sample.name, *map("=".join, sorted(sample.labels.items()))), sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert max(Counter(key for key, _ in found).values(), default=1) == 1
    return dict(found)


@given(st.lists(st.tuples(st.sampled_from("eax"), st.integers(0, 9), NAMES, ROLES), max_size=12))
def test_no_counter_goes_back_whoever_comes_and_goes(steps):
    metrics = ProbedMetrics()
    series, running, added, most = metrics.series, [], 0, 0
    before: dict[tuple[str, ...], float] = {}
    for step, which, name, role in steps:
        if step == "e":
            running.append(series.enter(name, role, 7))
            most = max(most, len(running))
        elif running and step == "a":
            series.add(running[which % len(running)], ONE, NONE)
            added += 3
        elif running:
            series.leave(running.pop(which % len(running)))
        assert len(set(running)) == len(running)
        now = samples(metrics)
        assert all(value <= now[key] for key, value in before.items() if "_pid" not in key[0])
        before = now
    totals = [value for key, value in before.items() if key[0] == "gcbench_gc_collections_total"]
    assert sum(totals) == added
    assert len(totals) <= 3 * most * 6  # of each of six kinds as many as run at once


def test_more_kinds_than_there_is_room_for_are_one():
    series = CounterSeries()
    for number in range(1000):
        place = series.enter(f"job{number}.py", "program", number)
        series.add(place, ONE, NONE)
        series.leave(place)
    found = series.now()
    assert len(found) == 257
    assert sum(int(sums.totals[0].sum()) for _, sums in found) == 3000
    assert {sums.pid for _, sums in found} == {0}
    assert sum(sums.images for _, sums in found) == 1000


def image(pid: int, seconds: float, name: str) -> ProbedProcess:
    generations = [GenerationTotals(each, each, seconds, seconds, 0.0, pid, 1, 2) for each in (0,)]
    return ProbedProcess(pid, name, "fork", 1, ["x"], "3.11", generations)


@pytest.mark.parametrize("number", [0, 255, 256, 257, 700])
def test_the_most_paused_images_are_kept_and_no_figure_is_lost(number):
    random = Random(number)
    seconds = [random.randrange(1000) / 8 for _ in range(number)]
    ended = EndedImages()
    for pid, each in enumerate(seconds):
        ended.add(pid, image(pid, each, f"Process-{pid}"))
    kept, folded = [each for _, each in ended.by_number()], ended.folded()
    assert len(kept) == min(number, 256)
    assert sorted(each.pause_seconds for each in kept) == sorted(seconds)[-256:]
    assert [each.name for each in folded] == ["Process"] * (number > 256)
    everything = kept + folded
    assert sum(each.images for each in everything) == number
    assert sum(each.pause_seconds for each in everything) == sum(seconds)
    assert sum(g.objects_freed for each in everything for g in each.generations) == sum(
        range(number)
    )
    assert sum(each.unseen for each in everything) == 2 * number
