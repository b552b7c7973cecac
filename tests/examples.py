"""How many examples a property is tried on, which the hypothesis profile decides."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings

Variant = TypeVar("Variant")

FULL = 100  # what hypothesis itself tries
PROFILES = {"search": 1000, "full": FULL, "quick": 8}


def register() -> None:
    """Make the profiles known; quick is in force unless --hypothesis-profile names another.

    search draws anew each time, for a person who looks for what the drawn cases do not show. The
    others draw the same each time: a test that fails says something of the change it was run for.
    """
    for name, most in PROFILES.items():
        # Of the default, which the variable CI does not alter; without a deadline, since no test
        # fails because a machine is busy.
        settings.register_profile(
            name,
            settings.get_profile("default"),
            max_examples=most,
            deadline=None,
            derandomize=name != "search",
        )
    settings.load_profile("quick")


def every() -> int:
    """Of what is gone through in order, and all of it by the full profile, each so many-th."""
    return max(1, FULL // settings().max_examples)


def some(variants: Sequence[Variant]) -> list[Variant]:
    """Of variants that are tested alike each `every()`-th, and the last."""
    return [*variants[: -1 : every()], variants[-1]]


def attempts(full: int) -> int:
    """Of what the full profile tries ``full`` times."""
    return max(2, full * settings().max_examples // FULL)


def examples(full: int, unchecked: Iterable[HealthCheck] = ()) -> settings:
    """For a property that the full profile tries ``full`` times, and quick in proportion."""
    return settings(max_examples=attempts(full), suppress_health_check=unchecked)
