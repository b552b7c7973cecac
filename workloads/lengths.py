"""How many tokens a prompt or an output has."""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.spec import parse_spec

MAX_TOKENS = 2**24
"""The longest prompt or output, in tokens: the sum of two still fits int32 by far."""

LENGTH_FORMS = "a number, fixed:N, uniform:LOW:HIGH or lognormal:MEDIAN:SIGMA[:LOW:HIGH]"


def _check_range(low: int, high: int) -> None:
    if not 1 <= low <= high <= MAX_TOKENS:
        raise ValueError(
            f"low {low:,} and high {high:,} must be in order and from 1 to {MAX_TOKENS:,} tokens"
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
        _check_range(self.low, self.high)

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
        _check_range(self.low, self.high)
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


Lengths = Fixed | Uniform | Lognormal


def parse_lengths(text: str) -> Lengths:
    """Read lengths as a flag gives them; ``48`` is ``fixed:48``. Raises ValueError."""
    spec = f"fixed:{text.strip()}" if text.strip().isdecimal() else text
    lengths: Lengths = parse_spec(spec, (Fixed, Uniform, Lognormal), "lengths", LENGTH_FORMS)
    return lengths
