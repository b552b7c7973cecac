"""What crosses between the scheduler and a worker process: a byte for the kind, then the rest."""

from typing import NamedTuple

from engines.builtin.transport import TransportPlan

STEP, RPC, ERROR, REFUSED, LOST, RESTORED, BELL = b"S", b"R", b"E", b"V", b"L", b"W", b"B"
"""A step or its tokens; a call or its answer; the sentence of an error that ends the process, and
of a ValueError that does not; how many steps a rank has read that needs the next one whole; up to
which number the steps that follow make it good; a look at the memory that is shared.
"""


class Setup(NamedTuple):
    """A rank's first message. ``place``: its number among those that are reached; ``rank``: among
    all; ``descriptors``: what it has inherited.
    """

    plan: TransportPlan
    place: int
    rank: int
    descriptors: tuple[int, ...]
