"""How many tokens a decode step yields: one, or several where drafts are accepted."""

import re

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.recipe.limits import MAX_ACCEPTED
from workloads.recipe.spec import parse_spec
from workloads.recipe.speculative import Decaying, Geometric, MinVariance, YieldHistogram

ACCEPTANCE_FORMS = (
    "a number such as 1, a range such as 1..4, min_variance:MEAN:MOST, geometric:P:MOST, "
    "decaying:P:DECAY:MOST or histogram:SHARE_OF_1:SHARE_OF_2:..."
)


class FixedAcceptance(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fixed"
):
    """Every decode step yields ``value`` tokens."""

    value: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.value <= MAX_ACCEPTED:
            raise ValueError(f"{self.value} tokens a step must be between 1 and {MAX_ACCEPTED}")

    @property
    def mean(self) -> float:
        """Tokens a step."""
        return self.value

    def table(self, rng: np.random.Generator, size: int = 1021) -> NDArray[np.int8]:
        """The one value, int8 ``[1]``; takes nothing from ``rng``."""
        return np.array([self.value], np.int8)


class UniformAcceptance(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="uniform"
):
    """A decode step yields ``low`` to ``high`` tokens, both included, all as likely."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 1 <= self.low <= self.high <= MAX_ACCEPTED:
            raise ValueError(
                f"{self.low}..{self.high} tokens a step must be in order and between 1 and "
                f"{MAX_ACCEPTED}"
            )

    @property
    def mean(self) -> float:
        """Tokens a step."""
        return (self.low + self.high) / 2

    def table(self, rng: np.random.Generator, size: int = 1021) -> NDArray[np.int8]:
        """Tokens per step, int8 ``[size]``.

        The default size is prime, so that no stride through the table visits only a part of it.
        """
        return rng.integers(self.low, self.high, size, np.int8, endpoint=True)


Acceptance = (
    FixedAcceptance | UniformAcceptance | MinVariance | Geometric | Decaying | YieldHistogram
)


def parse_acceptance(text: str) -> Acceptance:
    """Read tokens per step as a flag gives them, such as ``1..4``. Raises ValueError."""
    text = text.strip()
    if found := re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", text):
        low, high = found.groups()
        return FixedAcceptance(int(low)) if high is None else UniformAcceptance(int(low), int(high))
    kind, _, values = text.partition(":")
    if kind == "histogram":  # the only kind whose values are one field
        try:
            return YieldHistogram(tuple(float(value) for value in values.split(":")))
        except ValueError as error:
            raise ValueError(
                f"tokens per step {text!r} cannot be used, {error}; give {ACCEPTANCE_FORMS}"
            ) from None
    acceptance: Acceptance = parse_spec(
        text,
        (MinVariance, Geometric, Decaying, YieldHistogram),
        "tokens per step",
        ACCEPTANCE_FORMS,
    )
    return acceptance
