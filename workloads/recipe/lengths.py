"""How many tokens a prompt or an output has."""

import math
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.recipe.limits import MAX_TOKENS, check_range
from workloads.recipe.observed_lengths import (
    Empirical,
    LengthHistogram,
    read_empirical,
    read_histogram,
)
from workloads.recipe.spec import parse_spec

LENGTH_FORMS = (
    "a number, fixed:N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA[:LOW:HIGH], "
    "zipf:EXPONENT:LOW:HIGH, empirical:FILE or histogram:FILE"
)


class Fixed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed"):
    """Every length is ``value`` tokens."""

    value: int

    def __post_init__(self) -> None:
        if not 1 <= self.value <= MAX_TOKENS:
            raise ValueError(
                f"a length of {self.value:,} must be between 1 and {MAX_TOKENS:,} tokens"
            )

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``; takes nothing from ``rng``."""
        return np.full(n, self.value, np.int32)


class Uniform(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"
):
    """Lengths from ``low`` to ``high`` tokens, both included, all as likely."""

    low: int
    high: int

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``."""
        return rng.integers(self.low, self.high, n, np.int32, endpoint=True)


class Lognormal(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="lognormal"
):
    """Lengths whose logarithm is normal with mean ln ``median`` and deviation ``sigma``.

    Rounded to whole tokens, then clipped to ``low`` and ``high``, which so gather what lay outside.
    """

    median: float
    sigma: float
    low: int = 1
    high: int = 131_072

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        if not 1 <= self.median <= MAX_TOKENS:
            raise ValueError(
                f"a median of {self.median:g} must be between 1 and {MAX_TOKENS:,} tokens"
            )
        if not 0 < self.sigma < math.inf:
            raise ValueError(f"sigma {self.sigma:g} must be a number above 0")

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``."""
        tokens = rng.lognormal(math.log(self.median), self.sigma, n)
        return np.clip(np.rint(tokens), self.low, self.high).astype(np.int32)


class Zipf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="zipf"):
    """Lengths from ``low`` to ``high`` tokens, n of them as likely as n to the -``exponent``."""

    exponent: float
    low: int
    high: int

    def __post_init__(self) -> None:
        check_range(self.low, self.high)
        if not 0 <= self.exponent < math.inf:
            raise ValueError(f"exponent {self.exponent:g} must be a number of 0 or more")

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``."""
        # Relative to the lowest, which keeps a large exponent from making every weight 0.
        weights = (np.arange(self.low, self.high + 1) / self.low) ** -self.exponent
        below = np.cumsum(weights)
        drawn = np.searchsorted(below[:-1], rng.random(n) * below[-1], side="right")
        lens: NDArray[np.int32] = (self.low + drawn).astype(np.int32)
        return lens


Lengths = Fixed | Uniform | Lognormal | Zipf | Empirical | LengthHistogram


def parse_lengths(text: str) -> Lengths:
    """Read lengths as a flag gives them; ``48`` is ``fixed:48``. Raises ValueError."""
    text = text.strip()
    kind, _, path = text.partition(":")
    try:
        if kind == "empirical":
            return read_empirical(Path(path))
        if kind == "histogram":
            return read_histogram(Path(path))
    except ValueError as error:
        raise ValueError(f"lengths {text!r} cannot be used, {error}; give {LENGTH_FORMS}") from None
    spec = f"fixed:{text}" if text.isdecimal() else text
    lengths: Lengths = parse_spec(spec, (Fixed, Uniform, Lognormal, Zipf), "lengths", LENGTH_FORMS)
    return lengths
