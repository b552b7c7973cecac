"""Where a change matters, against the law it is worked out by, and a batch played step by step."""

from itertools import count

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import schedule

from engines.builtin.device.profile import load_profile
from harness.experiment.crossover import (
    Check,
    CrossoverPoint,
    HostChange,
    RelativeChange,
    between,
    by_batch,
    constant_steps,
    host_changes,
    model_steps,
    worth_checking,
)
from harness.experiment.result import CellResult, MetricSamples

seconds = st.floats(1e-5, 1.0)
ratios = st.floats(0.3, 3.0)


def host(baseline: float, *sides: float) -> HostChange:
    low, ratio, high = sorted(sides)
    return HostChange(baseline_seconds=baseline, ratio=ratio, ci95=(low, high))


@given(seconds, ratios, seconds)
def test_a_device_adds_to_both_sides(baseline, ratio, device):
    found = host(baseline, ratio, ratio, ratio).on_device(device)
    after = device + baseline * ratio
    assert found.change == pytest.approx(after / (device + baseline) - 1, abs=1e-12)


@given(seconds, ratios, ratios, ratios, st.floats(0.001, 0.2))
def test_from_the_limit_on_it_is_small_and_before_it_is_not(baseline, a, b, c, tolerance):
    change = host(baseline, a, b, c)
    _, low, high = change.small_from(tolerance)
    assert change.on_device(high * 1.001 + 1e-9).size(tolerance) == "small"
    if low > 1e-7:
        assert change.on_device(low * 0.999).size(tolerance) in ("faster", "slower")
    for device in (low * 1.01 + 1e-9, high * 0.99 - 1e-9):
        if low < device < high:
            assert change.on_device(device).size(tolerance) == "open"


@pytest.mark.parametrize(
    ("bounds", "size"),
    [
        ((-0.05, -0.02), "faster"),
        ((0.02, 0.05), "slower"),
        ((-0.0199, 0.0199), "small"),
        ((-0.03, -0.01), "open"),
        ((-0.03, 0.03), "open"),
    ],
)
def test_what_an_interval_says(bounds, size):
    assert RelativeChange(sum(bounds) / 2, *bounds).size(0.02) == size


def point(batch: int, change: HostChange, candidate: str = "b", heap: int = 0) -> CrossoverPoint:
    return CrossoverPoint(
        candidate=candidate, batch_size=batch, heap_objects=heap, latencies={"token": change}
    )


@given(st.integers(0, 100), seconds, seconds, seconds, seconds)
def test_between_two_batches_both_sides_are_drawn_straight(share, a, b, c, d):
    points = [point(300, host(b, d / b, d / b, d / b)), point(100, host(a, c / a, c / a, c / a))]
    found = between(by_batch(points, "b", 0, "token"), 100 + 2 * share)
    weight = share / 100
    assert found.baseline_seconds == pytest.approx((1 - weight) * a + weight * b)
    assert found.baseline_seconds * found.ratio == pytest.approx((1 - weight) * c + weight * d)


def test_beyond_what_was_measured_nothing_is_said():
    points = [point(8, host(1, 1, 1, 1)), point(64, host(1, 1, 1, 1))]
    known = by_batch(points, "b", 0, "token")
    assert between(known, 7) is between(known, 65) is between({}, 8) is None


def test_a_point_is_known_by_its_candidate_heap_and_latency():
    one, other = host(1, 1, 1, 1), host(2, 1, 1, 1)
    points = [point(8, one), point(4, other), point(8, other, "c"), point(8, other, heap=9)]
    assert by_batch(points, "b", 0, "token") == {4: other, 8: one}
    assert by_batch(points, "b", 0, "gap") == by_batch(points, "b", 1, "token") == {}


def played(prompts, outputs, batch_size, steps):
    """Means over steps of a full batch, after each has turned over: tokens, context, pairs."""
    queue, rows = count(), []
    sums = []
    for step in range(steps):
        rows = [row for row in rows if row[1] < outputs[row[0]]]
        while len(rows) < batch_size:
            rows.append([next(queue) % len(prompts), 0])
        tokens = context = pairs = 0
        for row in rows:
            request, done = row
            new = prompts[request] if done == 0 else 1
            tokens += new
            context += prompts[request] + done
            pairs += new * (prompts[request] + done)
            row[1] += 1
        if step >= steps // 4:
            sums.append((tokens, context, pairs))
    return np.mean(sums, axis=0)


def test_a_usual_step_is_that_of_a_batch_in_which_requests_come_and_go():
    rng = np.random.default_rng(0)
    prompts, outputs = rng.integers(1, 60, 400), rng.integers(1, 90, 400)
    # So slow that each token and each pair counts.
    profile = msgspec.structs.replace(load_profile("llama-3-8b-h200"), flops_per_second=1e10)
    asked = schedule(outputs, prompt_lens=prompts)
    found = model_steps(profile, {16: asked})
    tokens, context, pairs = played(prompts.tolist(), outputs.tolist(), 16, 20_000)
    assert found.token[16] == pytest.approx(profile.seconds(tokens, context, pairs), rel=0.02)
    prompt = prompts.mean()
    starts = profile.seconds(tokens - 1 + prompt, context, pairs + prompt**2)
    assert found.first_token[16] == pytest.approx(starts, rel=0.02)


def cell(id_: str, **samples: list[float | None]) -> CellResult:
    metrics = {
        name: MetricSamples(unit="s", direction="lower", kind="timing", median=None, samples=values)
        for name, values in samples.items()
    }
    return CellResult(
        id=id_, axes={}, group=0, samples=3, metrics=metrics, processes=[], tokens_sha256=[]
    )


def test_only_rounds_that_both_have_count_and_three_of_them_are_needed():
    before = cell("a", tpot_mean=[1.0, 2.0, None, 4.0], itl_p99=[1.0, None, 1.0, None])
    after = cell("b", tpot_mean=[2.0, 4.0, 9.0, 8.0], itl_p99=[1.0, 1.0, 1.0, 1.0])
    found = host_changes(before, after)
    assert list(found) == ["token"]
    assert found["token"].ratio == pytest.approx(2.0)
    assert found["token"].baseline_seconds == 2.0


def checked(predicted, measured):
    return Check(
        latency="token",
        candidate="b",
        batch_size=8,
        heap_objects=0,
        model="m",
        predicted=predicted,
        measured=measured,
    )


@pytest.mark.parametrize(
    ("predicted", "measured", "agrees"),
    [
        ((-0.20, -0.22, -0.18), (-0.17, -0.19, -0.15), True),
        ((-0.20, -0.21, -0.19), (-0.17, -0.18, -0.16), False),
        ((-0.20, -0.201, -0.199), (-0.191, -0.192, -0.19), True),
        ((-0.20, -0.22, -0.18), (0.2, 0.18, 0.22), False),
        ((-0.20, -0.22, -0.18), None, False),
    ],
)
def test_a_check_holds_where_intervals_meet_or_estimates_are_near(predicted, measured, agrees):
    check = checked(predicted, measured)
    assert check.agrees(0.02) == agrees


@pytest.mark.parametrize(
    ("predicted", "measured", "is_open"),
    [
        ((0.027, -0.041, 0.133), (-0.031, -0.178, 0.143), True),
        ((-0.20, -0.21, -0.19), (-0.1, -0.3, 0.1), True),
        ((-0.20, -0.21, -0.19), (-0.18, -0.2, -0.16), False),
        ((0.001, -0.003, 0.004), (0.002, -0.004, 0.005), False),
        ((-0.40, -0.42, -0.38), (-0.1, -0.3, 0.1), False),
        ((-0.40, -0.42, -0.38), None, False),
    ],
)
def test_a_check_is_open_where_it_agrees_for_its_width_alone(predicted, measured, is_open):
    predicted = RelativeChange(*predicted)
    measured = measured and RelativeChange(*measured)
    assert checked(predicted, measured).is_open(0.02) == is_open


def test_what_is_checked_was_not_measured_and_lies_between():
    change = host(1, 1, 1, 1)
    points = [point(batch, change, heap=heap) for batch in (1, 8, 64) for heap in (0, 9)]
    steps = {"slow": constant_steps(1.0, [1, 8, 64]), "quick": constant_steps(0.1, [1, 8, 64])}
    assert worth_checking(points, steps, 2) == [(36, 9, "quick"), (36, 9, "slow")]
    assert worth_checking(points, steps, 1) == [(36, 9, "quick")]
    assert worth_checking(points, steps, 0) == []
    assert worth_checking([], steps, 2) == []
    assert worth_checking([point(1, change), point(2, change)], steps, 2) == []
