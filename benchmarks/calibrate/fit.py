"""The profile that fits measured step times best.

Least squares over the logarithms of modelled / measured, every point with the same weight.
Attention gets rates of its own only where they explain more than another figure always would (BIC,
Schwarz 1978). Where an accelerator's best is known (a copy, a matrix product), its rates are taken
to lie within a factor of e of it, with the odds of one standard deviation; a rate that no step is
bound by is that best, or else the least that the points allow.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain, combinations

import msgspec

from benchmarks.calibrate.figures import Figure, figures
from benchmarks.calibrate.known import ATTENTION_RATES, LAUNCH, RATES, base
from benchmarks.calibrate.point import Load
from benchmarks.calibrate.roofline import Roofline, Solution
from engines.builtin.device.profile import DeviceProfile

_LEAST_ERROR = 1e-4
"""Root mean square below which a fit is as good as any."""
_LEAST_SPREAD = 0.005
"""Of the points around the roofline: no clock is better."""
_NO_LAUNCH = 1e-6
"""Share of the shortest step: a logarithm never gets to zero."""


class Fit(msgspec.Struct, frozen=True):
    """``profile``: the sizes given with their rates; ``figures``: what was fitted of it."""

    profile: DeviceProfile
    figures: list[Figure]


def fit(
    sizes: DeviceProfile,
    loads: Sequence[Load],
    seconds: Sequence[float],
    ceilings: Mapping[str, float],
) -> Fit:
    """Fit the rates to steps of these loads that took so long.

    ``ceilings``: an accelerator's best by field name, as far as it is known. Raises ValueError for
    a step of no length.
    """
    if min(seconds) <= 0:
        raise ValueError("a step of 0 s was measured: this device's clock tells nothing to fit")
    spread = _LEAST_SPREAD
    for _ in range(2):  # how far the points lie off a roofline is only known of one that was fitted
        roofline = Roofline(sizes, loads, seconds, ceilings, lean=spread)
        chosen = _choose(roofline)
        freedom = max(1, len(loads) - len(chosen.rates))
        spread = max(_LEAST_SPREAD, math.sqrt(chosen.cost / freedom))
    profile = msgspec.structs.replace(sizes, **chosen.rates)
    for name in chosen.rates:
        if name != LAUNCH and base(name) not in ceilings:
            profile = _least_allowed(profile, name, loads)
    if profile.launch_overhead_seconds < _NO_LAUNCH * min(seconds):
        profile = msgspec.structs.replace(profile, launch_overhead_seconds=0.0)
    rounded = {name: float(f"{getattr(profile, name):.6g}") for name in chosen.rates}
    profile = msgspec.structs.replace(profile, **rounded)
    return Fit(profile, figures(roofline, chosen, profile, ceilings, spread))


def _choose(roofline: Roofline) -> Solution:
    """With rates of attention's own or without, by the Bayesian information criterion."""
    count = len(roofline.seconds)
    solutions = [
        roofline.solve((*RATES[:2], LAUNCH, *own), {})
        for own in chain.from_iterable(combinations(ATTENTION_RATES, few) for few in range(3))
    ]

    def information(solution: Solution) -> float:
        mean_square = max(solution.cost / count, _LEAST_ERROR**2)
        return count * math.log(mean_square) + len(solution.rates) * math.log(count)

    return min(solutions, key=information)


def _least_allowed(profile: DeviceProfile, name: str, loads: Sequence[Load]) -> DeviceProfile:
    """The profile with the smallest rate at which no step is longer, if none depends on it."""
    side = 1 if "flops" in name else 0  # in a layer's pair of parts: bytes, arithmetic
    shared = getattr(profile, f"attention_{base(name)}") is None
    layers = [1] if name != base(name) else [0, 1] if shared else [0]
    shares = [
        parts[2 * layer + side] / parts[2 * layer + 1 - side]
        for parts in (profile.parts(*load) for load in loads)
        for layer in layers
        if parts[2 * layer + 1 - side]
    ]
    share = max(shares, default=1.0)
    if not 0 < share < 1:
        return profile
    return msgspec.structs.replace(profile, **{name: getattr(profile, name) * share})
