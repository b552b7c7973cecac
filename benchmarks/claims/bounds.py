"""What a figure has to be for a claim to hold: the value that was published, or a bound."""

from math import inf

import msgspec

MARGIN = 0.1
"""How far ours may be from a published value, as a part of it."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure is to lie ``about`` a published value, or a range of them, to a tenth on either
    side; or, where somebody said no more than a direction or a bound, ``at_least`` or ``at_most``.
    """

    about: float | tuple[float, float] | None = None
    at_least: float | None = None
    at_most: float | None = None

    def limits(self, is_ratio: bool) -> tuple[float, float]:
        """The lowest and the highest figure that will do. ``is_ratio``: of two cells; where people
        read it as a change, the tenth is one of the change: +19 % is met by +17.1 to +20.9 %.
        """
        if self.about is None:
            least = -inf if self.at_least is None else self.at_least
            return least, inf if self.at_most is None else self.at_most
        values = self.about if isinstance(self.about, tuple) else (self.about,)
        ends = [end for value in values for end in _ends(value, is_ratio)]
        return min(ends), max(ends)

    @property
    def mistake(self) -> str:
        """Why these are no bounds; "" if they are."""
        has_bound = self.at_least is not None or self.at_most is not None
        if has_bound == (self.about is not None):
            return "give about, or else at_least, at_most or both"
        return ""


def _ends(value: float, is_ratio: bool) -> tuple[float, float]:
    start = 1.0 if is_ratio and is_change(value) else 0.0
    reach = MARGIN * (value - start)
    return value - reach, value + reach


def is_change(ratio: float) -> bool:
    """Whether people would rather read it in percent."""
    return 1 / 3 < ratio < 3
