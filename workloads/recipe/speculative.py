"""Tokens a decode step yields where drafts are verified: the shapes that accepted drafts take.

A step that verifies ``most`` - 1 drafts yields one token and those drafts that are accepted.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.recipe.limits import MAX_ACCEPTED, check_shares

TABLE_SIZE = 1021
"""Prime, so that no stride through the table visits only a part of it."""


class _Shares(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What is known by how often a step yields one token, two, and so on."""

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all steps, those that yield 1, 2, … tokens."""
        raise NotImplementedError

    @property
    def mean(self) -> float:
        """Tokens a step."""
        return sum(tokens * share for tokens, share in enumerate(self.shares, start=1))

    def table(self, rng: np.random.Generator, size: int = TABLE_SIZE) -> NDArray[np.int8]:
        """Tokens per step, int8 ``[size]``: each number as often as it should be, in any order."""
        return rng.permutation(_quotas(self.shares, size))


class MinVariance(
    _Shares, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="min_variance"
):
    """The two whole numbers around ``mean_tokens``, at most ``most``: no other mix varies less."""

    mean_tokens: float
    most: int

    def __post_init__(self) -> None:
        _check_most(self.most)
        if not 1 <= self.mean_tokens <= self.most:
            raise ValueError(
                f"a mean of {self.mean_tokens:g} tokens a step must be from 1 to {self.most}, the "
                "most of a step"
            )

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all steps, those that yield 1, 2, … tokens."""
        lower = int(self.mean_tokens)
        more = self.mean_tokens - lower
        return (0.0,) * (lower - 1) + ((1 - more, more) if more else (1.0,))


class Geometric(
    _Shares, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="geometric"
):
    """Each draft is accepted with ``probability``, as long as all before it are."""

    probability: float
    most: int

    def __post_init__(self) -> None:
        _check_most(self.most)
        _check_probability("probability", self.probability)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all steps, those that yield 1, 2, … tokens."""
        return _until_a_miss([self.probability] * (self.most - 1))


class Decaying(_Shares, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="decaying"):
    """As `Geometric`, but each next draft is accepted ``decay`` times as likely."""

    probability: float
    decay: float
    most: int

    def __post_init__(self) -> None:
        _check_most(self.most)
        _check_probability("probability", self.probability)
        _check_probability("decay", self.decay)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all steps, those that yield 1, 2, … tokens."""
        return _until_a_miss([self.probability * self.decay**i for i in range(self.most - 1)])


class YieldHistogram(
    _Shares, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="histogram"
):
    """``weights``: of all steps, those that yield 1, 2, … tokens, as observed; they sum to one."""

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.weights) <= MAX_ACCEPTED:
            raise ValueError(f"weights must be between 1 and {MAX_ACCEPTED} numbers")
        check_shares(self.weights)

    @property
    def shares(self) -> tuple[float, ...]:
        """Of all steps, those that yield 1, 2, … tokens."""
        return self.weights


def _check_most(most: int) -> None:
    if not 1 <= most <= MAX_ACCEPTED:
        raise ValueError(f"at most {most} tokens a step must be between 1 and {MAX_ACCEPTED}")


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} {value:g} must be between 0 and 1")


def _until_a_miss(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Shares of 1, 2, … tokens, where draft i is accepted with ``probabilities[i]``."""
    shares, reached = [], 1.0
    for probability in probabilities:
        shares.append(reached * (1 - probability))
        reached *= probability
    return (*shares, reached)


def _quotas(shares: Sequence[float], size: int) -> NDArray[np.int8]:
    """``size`` numbers from 1 in which each is there by its share, to within one entry or two.

    What rounding does to the mean is carried on to the next number, so that where all shares are
    above 0 the mean is off by half an entry at most: as near as ``size`` numbers allow.
    """
    numbers = 1 + np.flatnonzero(shares)
    parts = np.array(shares)[numbers - 1]
    larger = size * (1 - np.cumsum(parts)[:-1] / parts.sum())  # entries above each number
    above, carried = [], 0.0
    for quota, step in zip(larger.tolist(), np.diff(numbers).tolist(), strict=True):
        wanted = round(quota - carried / step)
        count = min(max(wanted, int(quota)), int(quota) + 1)
        carried += (count - quota) * step
        above.append(count)
    counts = -np.diff([size, *sorted(above, reverse=True), 0])
    return np.repeat(numbers, counts).astype(np.int8)
