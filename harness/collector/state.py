"""One process's collector: set to a policy, read back, held against it, put back."""

import gc
from typing import NamedTuple

from harness.collector.policy import DEFAULT_THRESHOLDS, Policy, parse_policy
from harness.collector.result import GcState


def apply_policy(role: str, policy_text: str, batch_size: int) -> None:
    """Set this process's collector; the caller has just collected fully.

    ``batch_size`` in requests, for ``batch_threshold``. Raises ValueError as `parse_policy`.
    """
    policy = parse_policy(policy_text).for_role(role)
    if "as_is" in policy:
        return
    gc.unfreeze()
    gc.set_threshold(*_thresholds(policy, batch_size))
    if collects_by_itself(policy):
        gc.enable()
    else:
        gc.disable()
    if "freeze" in policy:
        gc.freeze()


def read_state(_role: str = "") -> GcState:
    """This process's collector as it is; walks the whole heap, so not within a window."""
    frozen = gc.get_freeze_count()
    return GcState(
        enabled=gc.isenabled(),
        thresholds=gc.get_threshold(),
        freeze_count=frozen,
        tracked_objects=len(gc.get_objects()) + frozen,
    )


def check_state(role: str, policy_text: str, batch_size: int, state: GcState) -> str:
    """Say in one sentence how ``state`` is not what the policy asks of this role, or ""."""
    policy = parse_policy(policy_text).for_role(role)
    if "as_is" in policy:
        return ""
    enabled, thresholds = collects_by_itself(policy), _thresholds(policy, batch_size)
    differences = []
    if state.enabled != enabled:
        differences.append(f"automatic collection is {_on(state.enabled)}, not {_on(enabled)}")
    if state.thresholds != thresholds:
        differences.append(f"the thresholds are {state.thresholds}, not {thresholds}")
    # `gc.freeze` freezes all there is, but 3.12 moves its few hundred immortal objects by itself.
    if (state.freeze_count > state.tracked_objects / 2) != ("freeze" in policy):
        share = f"{state.freeze_count} of {state.tracked_objects} objects are frozen"
        differences.append(f"{share}, not {'all' if 'freeze' in policy else 'none'}")
    if not differences:
        return ""
    return (
        f"The collector of the {role} process is not what --gc '{policy}' asks for: "
        f"{', '.join(differences)}; something in that process sets it too."
    )


class CollectorSnapshot(NamedTuple):
    """What `restore` puts back."""

    enabled: bool
    thresholds: tuple[int, int, int]
    freeze_count: int


def snapshot() -> CollectorSnapshot:
    """The settings of this process's collector."""
    return CollectorSnapshot(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())


def restore(before: CollectorSnapshot) -> None:
    """Put the settings back and unfreeze what was frozen since.

    What was unfrozen since stays so: `gc.freeze` would freeze the whole heap, not those
    objects.
    """
    gc.set_threshold(*before.thresholds)
    if gc.get_freeze_count() > before.freeze_count:
        gc.unfreeze()
    if before.enabled:
        gc.enable()
    else:
        gc.disable()


def _thresholds(policy: Policy, batch_size: int) -> tuple[int, int, int]:
    given = policy.numbers("threshold")
    gen0, gen1, gen2 = given + DEFAULT_THRESHOLDS[len(given) :]
    return gen0 + batch_size * ("batch_threshold" in policy), gen1, gen2


def collects_by_itself(policy: Policy) -> bool:
    """Whether CPython starts collections, rather than somebody by hand."""
    return "disabled" not in policy and "on_wait" not in policy


def _on(enabled: bool) -> str:
    return "on" if enabled else "off"
