"""A figure that was found, and what follows from its interval."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.statistics.verdict import Verdict

Settled = Literal["held", "not held", "not settled"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A figure with its 95 % interval, and whether it is what a condition wants.

    The interval of an exact figure has no width. ``is_modelled``: from a modelled device.
    ``reason``: why nothing is settled.
    """

    settled: Settled
    value: float | None = None
    ci95: tuple[float, float] | None = None
    verdict: Verdict | None = None
    is_modelled: bool = False
    reason: str = ""


def judged(limits: tuple[float, float], value: float, ci95: tuple[float, float]) -> Finding:
    """Held where the whole interval lies within the limits, not held where none of it does."""
    low, high = ci95
    least, most = limits
    if least <= low and high <= most:
        return Finding(settled="held", value=value, ci95=ci95)
    if high < least or most < low:
        return Finding(settled="not held", value=value, ci95=ci95)
    reason = "the interval reaches across the bound; more rounds narrow it"
    return Finding(settled="not settled", value=value, ci95=ci95, reason=reason)


def together(findings: Sequence[Finding]) -> Settled:
    """Of a claim with several conditions: all must hold, and one that does not is enough."""
    settled = {each.settled for each in findings}
    if "not held" in settled:
        return "not held"
    return "held" if settled == {"held"} else "not settled"
