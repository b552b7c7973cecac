"""Policy ``on_wait``: collecting by hand while the device computes and the host has nothing on."""

import gc
from collections.abc import Callable

from harness.collector.policy import ON_WAIT_FULL_EVERY, parse_policy

_GEN1_EVERY = 10


def busy_hook(role: str, policy_text: str) -> Callable[[], None] | None:
    """What an engine calls once a step while its device is busy; None for any other policy.

    Collects generation 0, on every tenth call generation 1 in its stead, and on every N-th,
    1,000th unless ``on_wait:N`` says otherwise, all of them; ``on_wait:0`` never does. Collects
    only, allocates nothing that is tracked. Raises ValueError as `parse_policy`.
    """
    policy = parse_policy(policy_text).for_role(role)
    if "on_wait" not in policy:
        return None
    full_every = (*policy.numbers("on_wait"), ON_WAIT_FULL_EVERY)[0]
    waits = 0

    def collect() -> None:
        nonlocal waits
        waits += 1
        if full_every and waits % full_every == 0:
            gc.collect(2)
        elif waits % _GEN1_EVERY == 0:
            gc.collect(1)
        else:
            gc.collect(0)

    return collect
