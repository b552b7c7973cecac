"""What a trial has found of the messages between scheduler and workers."""

import msgspec


class Messages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one direction in a window, one a step.

    ``fields``: bytes of the median step's by the path of the field; "(names)" and "(rest)" are of
    none. ``num_compared``: pairs of consecutive ones with a distance, of one pair in ``every``;
    ``num_too_long``: those of them without, for their length.
    """

    direction: str
    count: int
    fields: dict[str, int]
    num_compared: int
    every: int
    num_too_long: int
