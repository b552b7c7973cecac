"""How many examples a property is tried on, which the hypothesis profile decides."""

from collections.abc import Iterable

from hypothesis import HealthCheck, settings

FULL = 100  # what hypothesis itself tries
PROFILES = {"full": FULL, "quick": 10}


def register() -> None:
    """Make both profiles known; quick is in force unless --hypothesis-profile names another."""
    for name, most in PROFILES.items():
        # Of the default, since a variable CI would have hypothesis draw the same examples each
        # time; without a deadline, since no test fails because a machine is busy.
        default = settings.get_profile("default")
        settings.register_profile(name, default, max_examples=most, deadline=None)
    settings.load_profile("quick")


def every() -> int:
    """Of what is gone through in order, and all of it by the full profile, each so many-th."""
    return FULL // settings().max_examples


def examples(full: int, unchecked: Iterable[HealthCheck] = ()) -> settings:
    """For a property that the full profile tries ``full`` times, and quick in proportion."""
    tried = max(2, full * settings().max_examples // FULL)
    return settings(max_examples=tried, suppress_health_check=unchecked)
