"""How far the points leave a fitted figure open.

A range goes on while the other figures, fitted anew, explain the points so well that chance alone
would explain them worse one time in twenty (profile likelihood; Wilks 1938). Attention has rates of
its own in that, even where the profile lets it share: that they are the same is an assumption.
"""

from collections.abc import Mapping

import msgspec

from benchmarks.calibrate.known import LAUNCH, RATES, base
from benchmarks.calibrate.roofline import Roofline, Solution
from engines.builtin.device.profile import DeviceProfile

TOLD = 1.5
"""The most that the ends of a range may differ by for the points to tell a figure."""
_LEAST_SHARE = 1e-3
"""Of the shortest step, for the launch: from none no factor leads anywhere."""
_CHI_SQUARE = 3.84
"""95 % of the likelihood ratios of one figure lie below it."""
_FAR = 16.0
"""The factor to which a range is followed from its figure."""
_HALVINGS = 7


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted field of the profile. ``low`` and ``high``: its 95 % range, None where that is open.

    ``best``: the most that the device reached; None: unknown.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    best: float | None

    @property
    def is_told(self) -> bool:
        """Whether the points tell it, or leave it open by more than `TOLD`."""
        return self.low is not None and self.high is not None and self.high <= TOLD * self.low


def figures(
    roofline: Roofline,
    solution: Solution,
    profile: DeviceProfile,
    ceilings: Mapping[str, float],
    spread: float,
) -> list[Figure]:
    """Those of ``profile`` that were fitted in ``solution``; ``spread``: the standard deviation of
    the points' logarithms.
    """
    most = solution.cost + _CHI_SQUARE * spread**2
    shortest = float(roofline.seconds.min())
    found = []
    for name in solution.rates:
        value = getattr(profile, name)
        start, highest = value, value * _FAR
        if name == LAUNCH:
            start, highest = max(value, shortest * _LEAST_SHARE), shortest
        found.append(
            Figure(
                name=name,
                value=value,
                low=_end(roofline, name, start, start / _FAR, most),
                high=_end(roofline, name, start, highest, most),
                best=ceilings.get(base(name)),
            )
        )
    return found


def _end(roofline: Roofline, name: str, value: float, furthest: float, most: float) -> float | None:
    """Where a figure's range ends on the way from ``value``: held there, and the others fitted
    anew with rates of its own for attention, the cost comes to ``most``. None: nowhere.
    """
    others = [rate for rate in RATES if rate != name]

    def is_allowed(distance: float) -> bool:
        held = {name: value * (furthest / value) ** distance}
        return roofline.solve(others, held, 2, most).cost <= most

    if is_allowed(1.0):
        return None
    near, far = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if is_allowed(middle) else (near, middle)
    return float(value * (furthest / value) ** far)
