"""Where throughput ends, of servers whose end is known: a queue, simulated to the microsecond."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest
from small import schedule

from engines.openai.capture import Recording
from harness.load.goodput import Goodput
from harness.load.observed import Observed
from harness.load.steady import SteadyRate, steady_rate
from harness.load.sweep import InvalidPointError, KneeError, KneeSearch, SweepPoint, SweepResult
from harness.load.task import Asked
from harness.report.sweep import describe_sweep
from harness.report.sweep_image import sweep_image
from harness.trial.recorder import RequestStamps

SLOTS, TOKENS, STEP_SECONDS = 16, 20, 0.02
SERVICE = TOKENS * STEP_SECONDS
CAPACITY = SLOTS / SERVICE
SECONDS = 10.0


def served(sent, seed=0):
    """What requests that come at these seconds are given by so many slots, first come, first."""
    free = [0.0] * SLOTS
    begun = np.zeros(len(sent))
    for request, moment in enumerate(sent):
        begun[request] = max(moment, heapq.heappop(free))
        heapq.heappush(free, begun[request] + SERVICE)
    delivered = begun[:, None] + STEP_SECONDS * np.arange(1, TOKENS + 1)
    return steady(sent, delivered)


def closed(streams):
    """The same of streams that each send when they have been answered."""
    busy = min(streams, SLOTS)
    count = int(busy / SERVICE * SECONDS)
    begun = SERVICE * (np.arange(count) // busy)
    sent = np.sort(np.maximum(begun - (streams - busy) * SERVICE / busy, 0))
    delivered = begun[:, None] + STEP_SECONDS * np.arange(1, TOKENS + 1)
    return steady(sent, delivered)


def steady(sent, delivered):
    """`SteadyRate` of a run, and the waits for first tokens."""
    count = len(sent)
    sent_ns = 10**9 + np.rint(1e9 * sent).astype(np.int64)
    responses = SimpleNamespace(
        completed=np.ones(count, bool),
        num_deliveries=np.full(count, delivered.shape[1]),
        delivered_ns=10**9 + np.rint(1e9 * delivered.ravel()).astype(np.int64),
    )
    zeros = np.zeros(count, np.int64)
    requests = RequestStamps(zeros, sent_ns, sent_ns, zeros, zeros, zeros, zeros.astype(np.int8))
    recording = Recording(*[zeros] * 9)
    asked = Asked(urls=["http://h"], model="m")
    observed = Observed(schedule([1] * count), asked, 0, recording, responses, [], [], [])
    return steady_rate(observed, requests)


def point(value, found, *, invalid="", share=1.0):
    latencies = {"ttft_median": 0.05, "tpot_median": STEP_SECONDS, "e2el_median": SERVICE}
    good = Goodput(objectives={"ttft": 1.0}, good=1, share=share, per_second=None)
    return SweepPoint(
        asked=value,
        run="",
        invalid=invalid,
        steady=found,
        latencies=latencies,
        output_throughput=None,
        goodput=good,
    )


def open_loop(seed):
    rng = np.random.default_rng(seed)

    def load(rate):
        gaps = rng.exponential(1 / rate, int(3 * rate * SECONDS) + 20)
        moments = np.cumsum(gaps)
        return point(rate, served(moments[moments < SECONDS]))

    return load


@pytest.mark.parametrize("seed", range(20))
def test_the_rate_at_which_a_queue_is_full_is_found(seed):
    search = KneeSearch("rate", open_loop(seed))
    knee = search.knee(1 + seed % 7)
    assert knee.value == pytest.approx(CAPACITY, rel=0.05)
    search.around(knee)
    asked = [each.asked / knee.value for each in search.points]
    for share in (0.5, 0.8, 0.9, 1.1):
        assert min(abs(each / share - 1) for each in asked) < 0.051


@pytest.mark.parametrize("slots", [12, 16])
def test_so_many_streams_as_are_busy_at_capacity_are_found(slots, monkeypatch):
    monkeypatch.setitem(globals(), "SLOTS", slots)
    knee = KneeSearch("concurrency", lambda value: point(value, closed(int(value)))).knee(1)
    assert knee.value == pytest.approx(slots, rel=0.05)
    assert knee.capacity == pytest.approx(slots / SERVICE, rel=0.05)


def in_steps(streams):
    """The same of an engine that takes requests between steps: at once only where it is idle."""
    count = TOKENS + (streams > 1)
    begun = np.repeat(np.arange(int(SECONDS / STEP_SECONDS / count)), min(streams, SLOTS))
    begun = begun * count * STEP_SECONDS
    waits = max(0, streams - SLOTS) * count * STEP_SECONDS / SLOTS
    delivered = begun[:, None] + STEP_SECONDS * np.arange(1, TOKENS + 1)
    return steady(np.maximum(begun - waits, 0), delivered)


@pytest.mark.parametrize("slots", [12, 16])
def test_an_idle_server_that_begins_at_once_does_not_move_the_end(slots, monkeypatch):
    monkeypatch.setitem(globals(), "SLOTS", slots)
    knee = KneeSearch("concurrency", lambda value: point(value, in_steps(int(value)))).knee(1)
    assert knee.value == pytest.approx(slots, rel=0.02)


@pytest.mark.parametrize(("share", "end"), [(0.74, 16 / 0.74), (0.76, 8 / 0.6)])
def test_streams_are_as_fast_as_at_the_most_that_are_below_three_quarters(share, end):
    gave = {8: 60, 16: 100 * share, 32: 100, 64: 100}
    search = KneeSearch("concurrency", lambda value: point(value, flat(value, gave[value])))
    assert search.knee(8).value == pytest.approx(end)


def flat(sent, gave, half=0.0):
    return SteadyRate(seconds=9, sent=sent, served=gave, ci95=(gave - half, gave + half))


@pytest.mark.parametrize(("share", "loads"), [(0.899, 1), (0.901, 2)])
def test_a_server_is_behind_below_nine_tenths_of_what_it_is_asked(share, loads):
    search = KneeSearch("rate", lambda rate: point(rate, flat(rate, share * 10)))
    search.knee(10)
    assert len(search.points) == loads


@pytest.mark.parametrize(("more", "loads"), [(1.10, 2), (1.12, 3)])
def test_streams_are_enough_where_twice_as_many_give_no_ninth_more(more, loads):
    gave = {1: 10, 2: 10 * more, 4: 10 * more}
    search = KneeSearch("concurrency", lambda value: point(value, flat(value, gave[value])))
    search.knee(1)
    assert len(search.points) == loads


@pytest.mark.parametrize(("half", "loads"), [(0.24, 1), (0.26, 2)])
def test_a_capacity_that_is_told_too_roughly_is_loaded_again(half, loads):
    search = KneeSearch("rate", lambda rate: point(rate, flat(100, 10, half)))
    knee = search.knee(100)
    assert len(search.points) == loads
    low, high = knee.ci95
    assert (high - low) / 2 == pytest.approx(half / loads**0.5)


@pytest.mark.parametrize(("share", "kept"), [(0.991, True), (0.989, False)])
def test_objectives_are_kept_where_99_percent_of_requests_keep_them(share, kept):
    def load(rate):
        return point(rate, flat(rate, min(rate, 10)), share=share if rate <= 7 else 0.5)

    search = KneeSearch("rate", load)
    search.knee(2)
    if not kept:
        assert search.kept() is None
        return
    low, high = search.kept()
    assert low <= 7 < high
    assert high / low <= 1.05


def test_an_invalid_load_is_tried_again_and_ends_the_search_at_last():
    tries = []

    def load(rate):
        tries.append(rate)
        return point(rate, flat(rate, 1), invalid="" if len(tries) == 4 else "too late")

    assert KneeSearch("rate", load).knee(8).value == 1
    tries[:] = [0] * 4
    with pytest.raises(InvalidPointError, match="too late"):
        KneeSearch("rate", load).knee(8)
    assert len(tries) == 8


def test_a_capacity_is_loaded_three_times_at_most():
    search = KneeSearch("rate", lambda rate: point(rate, flat(100, 10, 1)))
    search.knee(100)
    assert len(search.points) == 3


def test_loads_at_four_shares_of_the_end_are_made_where_none_is_near():
    search = KneeSearch("rate", lambda rate: point(rate, flat(100, 10)))
    knee = search.knee(100)
    search.points += [point(10 * share, flat(1, 1)) for share in (0.8 / 1.045, 0.9 / 1.055)]
    before = len(search.points)
    search.around(knee)
    assert [each.asked for each in search.points[before:]] == pytest.approx([5, 9, 11])


@pytest.mark.parametrize(("apart", "loads"), [(1.049, 0), (1.051, 1)])
def test_objectives_are_bracketed_within_five_percent(apart, loads):
    search = KneeSearch("rate", lambda rate: point(rate, flat(1, 1)))
    search.points = [point(10, flat(1, 1)), point(10 * apart, flat(1, 1), share=0.5)]
    low, high = search.kept()
    assert len(search.points) == 2 + loads
    assert high / low <= 1.05


def test_a_server_without_an_end_ends_the_search():
    search = KneeSearch("rate", lambda rate: point(rate, flat(rate, rate)))
    with pytest.raises(KneeError, match="kept up"):
        search.knee(1)
    assert len(search.points) == 24


def test_a_run_that_is_too_short_has_no_steady_rate():
    assert served(np.linspace(0, 0.6, 30)) is None
    assert served(np.linspace(0, 0.7, 30)) is not None


def test_what_is_said_of_a_sweep_names_the_end_and_draws_it():
    search = KneeSearch("rate", open_loop(3))
    knee = search.knee(4)
    result = SweepResult(
        name="sweep",
        kind_of="rate",
        asked=Asked(urls=["http://h"], model="m"),
        points=search.points,
        knee=knee,
        kept=(30.0, 31.0),
        objectives={"ttft": 1.0},
    )
    report = describe_sweep(result)
    assert report.answer.startswith("✓ Throughput ends at 4")
    assert (
        "99.0 % of requests keep ttft 1 ms up to between 30.0 and 31.0 req/s"
        in (report.sentences[0])
    )
    assert sweep_image(result, ".svg").startswith(b"<?xml")
    unknown = describe_sweep(
        SweepResult(name="s", kind_of="rate", asked=result.asked, points=[], knee=None)
    )
    assert unknown.answer.startswith("✗")
