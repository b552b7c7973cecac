"""From where on a change of the host path matters: what a device's step leaves of it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from engines.builtin.device.profile import DeviceProfile
from harness.experiment.result import CellResult
from harness.result.result import Result
from harness.statistics.paired_ratio import FEWEST_PAIRS, paired_ratio
from workloads.schedule import Schedule

Latency = Literal["token", "gap", "first_token"]

LATENCIES: dict[Latency, str] = {
    "token": "tpot_mean",
    "gap": "itl_p99",
    "first_token": "ttft_median",
}
"""What a user waits for, and the metric that is its length. Not the host time of a mean step: while
the collector walks a large heap the whole batch waits, and in a quick step hardly anybody."""

_AGREE_WITHIN = 0.5
"""Of the tolerance: two estimates so near to each other agree, however narrow their intervals."""


class RelativeChange(NamedTuple):
    """A relative change with the bounds of its 95 % interval."""

    change: float
    low: float
    high: float

    def size(self, tolerance: float) -> Literal["faster", "slower", "small", "open"]:
        """Whether it is at least ``tolerance``, less than that, or not told by the interval."""
        if self.high <= -tolerance:
            return "faster"
        if self.low >= tolerance:
            return "slower"
        return "small" if -tolerance < self.low and self.high < tolerance else "open"


class HostChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a candidate makes of a latency, at a point where the device takes no time.

    ``baseline_seconds``: the baseline's, the median over rounds; ``ratio``: candidate / baseline
    with its 95 % interval.
    """

    baseline_seconds: float
    ratio: float
    ci95: tuple[float, float]

    @property
    def change(self) -> RelativeChange:
        """As it was measured."""
        return RelativeChange(*(each - 1 for each in (self.ratio, *self.ci95)))

    def on_device(self, device_seconds: float) -> RelativeChange:
        """The same where the device takes so long: it adds to both sides, for host and device take
        turns.
        """
        share = self.baseline_seconds / (self.baseline_seconds + device_seconds)
        return RelativeChange(*(each * share for each in self.change))

    def small_from(self, tolerance: float) -> tuple[float, float, float]:
        """Seconds of a device's step from which on the change is below ``tolerance``, and their
        95 % interval; 0 where it is below on any device.
        """
        below, above = sorted(abs(each - 1) for each in self.ci95)
        if self.ci95[0] < 1 < self.ci95[1]:
            below = 0.0
        from_, low, high = (
            max(0.0, self.baseline_seconds * (each / tolerance - 1))
            for each in (abs(self.ratio - 1), below, above)
        )
        return from_, low, high


class CrossoverPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a candidate at one batch and heap, on a device that takes no time."""

    candidate: str
    batch_size: int
    heap_objects: int
    latencies: dict[Latency, HostChange]


class ModelSteps(msgspec.Struct, frozen=True, kw_only=True):
    """A model's modelled seconds a step by batch: a usual one, and one that starts a request."""

    name: str
    token: dict[int, float]
    first_token: dict[int, float]

    def seconds(self, latency: Latency, batch_size: int) -> float:
        """What the device takes of a latency."""
        return (self.first_token if latency == "first_token" else self.token)[batch_size]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction for a batch that was not measured, and a measurement on a modelled device, which
    is None where it gave nothing.
    """

    latency: Latency
    candidate: str
    batch_size: int
    heap_objects: int
    model: str
    predicted: RelativeChange
    measured: RelativeChange | None

    def agrees(self, tolerance: float) -> bool:
        """Whether the two intervals meet, or the estimates are half a tolerance apart at most."""
        if self.measured is None:
            return False
        change, low, high = self.predicted
        measured, least, most = self.measured
        meet = low <= most and least <= high
        return meet or abs(change - measured) <= _AGREE_WITHIN * tolerance

    def is_open(self, tolerance: float) -> bool:
        """Whether it agrees for no other reason than that the measurement tells no size."""
        is_wide = self.measured is not None and self.measured.size(tolerance) == "open"
        return is_wide and self.agrees(tolerance)


class CrossoverResult(Result, frozen=True, kw_only=True, tag="crossover"):
    """Everything `advise --models` knows at its end. ``axes``: those that all cells share."""

    axes: dict[str, str | int]
    baseline: str
    tolerance: float
    rounds: int
    points: list[CrossoverPoint]
    models: list[ModelSteps]
    checks: list[Check]

    @property
    def candidates(self) -> list[str]:
        """All of them, in their order."""
        return list(dict.fromkeys(point.candidate for point in self.points))

    @property
    def heaps(self) -> list[int]:
        """The heaps that were measured, in their order."""
        return list(dict.fromkeys(point.heap_objects for point in self.points))


def host_changes(baseline: CellResult, candidate: CellResult) -> dict[Latency, HostChange]:
    """Every latency that both cells have in enough rounds."""
    found: dict[Latency, HostChange] = {}
    for latency, metric in LATENCIES.items():
        sides = [cell.metrics.get(metric) for cell in (baseline, candidate)]
        before, after = (np.array(side.samples if side else [], float) for side in sides)
        both = len(before) == len(after) and np.isfinite(before) & np.isfinite(after)
        if np.count_nonzero(both) < FEWEST_PAIRS:
            continue
        ratio = paired_ratio(before, after)
        found[latency] = HostChange(
            baseline_seconds=float(np.median(before[both])), ratio=ratio.ratio, ci95=ratio.ci95
        )
    return found


def by_batch(
    points: Iterable[CrossoverPoint], candidate: str, heap_objects: int, latency: Latency
) -> dict[int, HostChange]:
    """What is known of one candidate, heap and latency, the smallest batch first."""
    known = {
        point.batch_size: point.latencies[latency]
        for point in points
        if (point.candidate, point.heap_objects) == (candidate, heap_objects)
        and latency in point.latencies
    }
    return dict(sorted(known.items()))


def between(known: Mapping[int, HostChange], batch_size: int) -> HostChange | None:
    """The change at a batch between two that were measured: both sides' seconds, drawn straight.

    ``known``: see `by_batch`. None outside them.
    """
    batches = list(known)
    if not known or not batches[0] <= batch_size <= batches[-1]:
        return None
    seconds = np.array([[change.baseline_seconds] for change in known.values()])
    sides = seconds * [(1.0, change.ratio, *change.ci95) for change in known.values()]
    before, ratio, low, high = (float(np.interp(batch_size, batches, side)) for side in sides.T)
    return HostChange(
        baseline_seconds=before, ratio=ratio / before, ci95=(low / before, high / before)
    )


def model_steps(profile: DeviceProfile, schedules: Mapping[int, Schedule]) -> ModelSteps:
    """What a modelled device and its launch take at each batch; ``schedules``: what was replayed
    there. Of a usual step all tokens are taken to decode.
    """
    token, first_token = {}, {}
    for batch_size, schedule in schedules.items():
        load = _usual_step(schedule, batch_size)
        prompt = float(np.mean(schedule.prompt_lens))
        started = (load.num_tokens + prompt - 1, load.context, load.pairs + prompt * prompt)
        rows = round(load.num_tokens)
        token[batch_size] = profile.latency_seconds(rows, *map(round, load))
        first_token[batch_size] = profile.latency_seconds(rows - 1, *map(round, started))
    return ModelSteps(name=profile.name, token=token, first_token=first_token)


class _Load(NamedTuple):
    """Sums over a step's requests, see `DeviceProfile.seconds`."""

    num_tokens: float
    context: float
    pairs: float


def _usual_step(schedule: Schedule, batch_size: int) -> _Load:
    """A mean step of a full batch in which a request takes the place of each that ends.

    A request takes as many steps as it has output tokens; in the first its prompt is computed.
    """
    prompts = schedule.prompt_lens.astype(float)
    outputs = schedule.output_lens.astype(float)
    steps = outputs.sum()
    tokens = (prompts + outputs - 1).sum()
    context = (outputs * prompts + outputs * (outputs - 1) / 2).sum()
    pairs = context - prompts.sum() + (prompts**2).sum()
    return _Load(*(batch_size * each / steps for each in (tokens, context, pairs)))


def constant_steps(seconds: float, batches: Sequence[int]) -> ModelSteps:
    """A device whose step takes as long at any batch: what a user knows of a model."""
    same = dict.fromkeys(batches, seconds)
    return ModelSteps(name=f"{1e3 * seconds:g} ms a step", token=same, first_token=same)


class CheckPlace(NamedTuple):
    """Where predictions will be checked: a batch between two others, on a modelled device."""

    batch_size: int
    heap_objects: int
    profile: str


def worth_checking(
    points: Sequence[CrossoverPoint], steps: Mapping[str, ModelSteps], count: int
) -> list[CheckPlace]:
    """So many places, each with another model, those with the shortest steps: in the middle of the
    widest gap between batches, with the largest heap.

    ``steps``: by the name of the profile. None where no batch lies between two that were measured.
    """
    batches = sorted({point.batch_size for point in points})
    gaps = [(high - low, low, high) for low, high in pairwise(batches) if high - low > 1]
    if not gaps:
        return []
    _, low, high = max(gaps)
    heap = max(point.heap_objects for point in points)
    quick_first = sorted(steps, key=lambda name: steps[name].token[high])
    return [CheckPlace((low + high) // 2, heap, profile) for profile in quick_first[:count]]
