"""Forty nights with a step, a stall in the tail, a leak and a drift: each named, on its commit."""

from collections.abc import Callable

import numpy as np
import pytest
from asv_writer import Benchmark
from planted_nights import TIMING, Ended, Nights

pytest.importorskip("asv")

STEP, LEAK_AT, STALL = 14, 20, 26
LEAK = Benchmark(
    "suite.track_tracked_survivors_per_step",
    attributes={
        "unit": "objects",
        "direction": "lower",
        "kind": "exact",
        "noise_floor": 0.01,
        "least_change": 0.5,
    },
)
TAIL = TIMING._replace(name="suite.track_itl_max")
SLOWER = TIMING._replace(name="suite.track_host_time")
DAYS = np.arange(40)


def planted(seed: int) -> list[tuple[Benchmark, list[float]]]:
    """2 % noise; a tail has 20 %."""
    rng = np.random.default_rng(seed)
    noise = np.exp(rng.standard_normal((3, 40)) * [[0.02], [0.2], [0.02]])
    return [
        (TIMING, (1e-3 * noise[0] * np.where(DAYS >= STEP, 1.1, 1)).tolist()),
        (TAIL, (2e-3 * noise[1] + 5.6e-3 * (DAYS >= STALL)).tolist()),
        (SLOWER, (1e-3 * noise[2] * np.exp(0.004 * DAYS)).tolist()),
        (LEAK, np.where(DAYS >= LEAK_AT, 0.989, 0.0).tolist()),
    ]


@pytest.fixture
def after(tmp_path, capsys, monkeypatch) -> Callable[[int], Ended]:
    """The night on which so many commits have been measured."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def end(count: int) -> Ended:
        nights = Nights(tmp_path / f"toy{count}", count)
        nights.plant([(of, values[:count]) for of, values in planted(1)])
        return nights.end(capsys, "--reruns", "0")

    return end


@pytest.mark.parametrize(
    ("count", "name", "place", "most"),
    [
        (STEP + 4, TIMING.name, STEP, 3),
        (LEAK_AT + 1, LEAK.name, LEAK_AT, 1),
        (STALL + 4, TAIL.name, STALL, 3),
    ],
)
def test_each_planted_change_is_named_on_its_commit(after, count, name, place, most):
    ended = after(count)
    assert ended.status == 1
    (alert,) = [each for each in ended.result.alerts if each.changes[0].series == name]
    subjects = [each.subject for each in alert.plausible]
    assert f"Change {place}" in subjects
    assert len(subjects) <= most
    assert alert.changes[0].verdict == "worse"


def test_a_drift_is_told_and_is_nobodys(after):
    ended = after(40)
    assert not any(each.changes[0].series == SLOWER.name for each in ended.result.alerts)
    (note,) = [note for note in ended.result.notes if "drifts slowly" in note]
    assert "suite.track_host_time (+1" in note
    assert note in ended.markdown
