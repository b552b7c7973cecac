"""A part of an experiment's blocks, for a scheduler that knows nothing of them."""

import re
from typing import NamedTuple

from harness.experiment.executor import Block

_MOST = 10_000


class Shard(NamedTuple):
    """The ``number``-th of ``total`` shards, from 1 on; each block is in one of them, whole."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"shard {self.number} of {self.total}"

    def takes(self, block: Block) -> bool:
        """Whether a block is in it. Each group's rounds go round, so that shards differ by one."""
        return (block.round + block.group) % self.total == self.number % self.total


def parse_shard(text: str) -> Shard | None:
    """The shard that "2/8" names; None for "". Raises ValueError."""
    if not text:
        return None
    found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text)
    shard = Shard(int(found[1]), int(found[2])) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.total <= _MOST:
        raise ValueError(f"--shard {text}: must be I/N, such as 2/8, with I from 1 to N")
    return shard
