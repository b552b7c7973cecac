"""Why something has no figure, where it stands in the place of one."""

from typing import NamedTuple


class NotMeasured(NamedTuple):
    """``reason``: in a sentence."""

    reason: str
