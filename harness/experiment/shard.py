"""A part of an experiment's blocks, for a scheduler that knows nothing of them."""

import re
from typing import NamedTuple

from harness.experiment.executor import Block

_MOST = 10_000


class Shard(NamedTuple):
    """The ``number``-th of ``total`` shards, from 1 on, or all from there to the ``last``-th; each
    block is in one of them, whole.
    """

    number: int
    total: int
    last: int = 0

    @property
    def width(self) -> int:
        """How many of ``total`` it is."""
        return max(self.number, self.last) - self.number + 1

    def __str__(self) -> str:
        if self.width == 1:
            return f"shard {self.number} of {self.total}"
        return f"shards {self.number} to {self.last} of {self.total}"

    def takes(self, block: Block) -> bool:
        """Whether a block is in it. Each group's rounds go round, so that shards differ by one."""
        return (block.round + block.group - self.number) % self.total < self.width


def parse_shard(text: str) -> Shard | None:
    """The shard that "2/8" names, or "2-4/8", three of them; None for "". Raises ValueError."""
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?/(\d{1,5})", text)
    shard = Shard(int(found[1]), int(found[3]), int(found[2] or found[1])) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.last <= shard.total <= _MOST:
        raise ValueError(
            f"--shard {text}: must be I/N or I-J/N, such as 2/8 or 2-4/8, with I and J from 1 to N"
        )
    return shard
