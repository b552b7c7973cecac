"""Which steps of a trial are its steady state, or why there is none, in words."""

from harness.trial.steady_state import (
    MIN_STEPS,
    DriftingSteps,
    SteadyState,
    SteadySteps,
    UnsteadyLoad,
)


def steady_words(found: SteadyState | None) -> str:
    """ "steps 212 to 4,801 of 5,012", "none: …", or "" where nobody looked."""
    match found:
        case None:
            return ""
        case SteadySteps():
            return _steps(found)
        case _:
            return f"none: {unsteady_words(found)}"


def unsteady_words(found: UnsteadyLoad | DriftingSteps) -> str:
    """Why there is none."""
    if isinstance(found, UnsteadyLoad):
        return (
            f"load stays within 5 % of its peak ({found.peak:,} requests in flight) for "
            f"{found.longest:,} steps at most, {MIN_STEPS} are needed"
        )
    verb = "grows" if found.drift > 0 else "falls"
    return f"step time {verb} by {abs(found.drift):.0%} over {_steps(found)}"


def _steps(found: SteadySteps | DriftingSteps) -> str:
    return f"steps {found.first + 1:,} to {found.after:,} of {found.num_steps:,}"
