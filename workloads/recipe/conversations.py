"""What requests have in common: turns of one conversation, a prefix that many share."""

import math

import msgspec
import numpy as np

from workloads.recipe.lengths import Fixed, Lengths
from workloads.recipe.limits import MAX_TOKENS
from workloads.requests import (
    GROUP_STREAMS,
    Int32Array,
    Int64Array,
    Requests,
    Segments,
    own_streams,
)


class Turns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests are turns of conversations, ``count`` each.

    A turn's prompt is the conversation so far: the prompt before, a stand-in for its answer of
    the answer's length, and the user's new tokens. It is sent ``think_seconds`` after the one
    before was to be sent, or when that has ended, whichever is later.
    """

    count: int | Lengths
    think_seconds: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.count, int):
            Fixed(self.count)
        if not 0 <= self.think_seconds < math.inf:
            raise ValueError(f"think_seconds {self.think_seconds:g} must be 0 or more")

    def converse(self, requests: Requests, rng: np.random.Generator) -> Requests:
        """Make conversations of as many requests, in order of arrival.

        ``prompt_lens`` are taken for the user's tokens of each turn and the first
        ``arrival_seconds`` for the conversations' beginnings. Raises ValueError where a prompt
        grows too long.
        """
        n = len(requests.prompt_lens)
        lengths = Fixed(self.count) if isinstance(self.count, int) else self.count
        counts = lengths.sample(rng, n)
        enough = np.searchsorted(np.cumsum(counts, dtype=np.int64), n) + 1
        conversation = np.repeat(np.arange(enough), counts[:enough])[:n]
        first = np.flatnonzero(np.diff(conversation, prepend=-1))[conversation]
        turn = np.arange(n) - first
        prompt_lens = _so_far(requests, first)
        arrival_seconds = requests.arrival_seconds[conversation] + turn * self.think_seconds

        order = np.argsort(arrival_seconds, kind="stable")
        number = np.empty(n, np.int64)
        number[order] = np.arange(n)
        previous = np.where(turn > 0, number[np.arange(n) - 1], -1)
        return Requests(
            prompt_lens=prompt_lens[order],
            output_lens=requests.output_lens[order],
            arrival_seconds=arrival_seconds[order],
            segments=own_streams(prompt_lens[order])._replace(streams=number[first][order]),
            previous_turn=previous[order].astype(np.int32),
        )


def _so_far(requests: Requests, first: Int64Array) -> Int32Array:
    """Lengths of the prompts, turn after turn, int32 ``[N]``; ``first``: each one's first turn."""
    new = requests.prompt_lens.astype(np.int64)
    said = np.cumsum(new + requests.output_lens)
    before = said - new - requests.output_lens
    prompt_lens = before - before[first] + new
    if prompt_lens.max() > MAX_TOKENS:
        raise ValueError(
            f"turns: a conversation grows to a prompt of {prompt_lens.max():,} tokens, and "
            f"{MAX_TOKENS:,} is the most; have fewer turns or shorter ones"
        )
    return prompt_lens.astype(np.int32)


class SharedPrefix(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prompts begin with the ``tokens`` tokens of one of ``groups`` groups, all as likely."""

    groups: int
    tokens: int

    def __post_init__(self) -> None:
        if not 1 <= self.groups < 2**31:
            raise ValueError(f"groups {self.groups:,} must be 1 or more")
        if not 1 <= self.tokens <= MAX_TOKENS:
            raise ValueError(f"tokens {self.tokens:,} must be between 1 and {MAX_TOKENS:,}")

    def prepend(self, requests: Requests, rng: np.random.Generator) -> Requests:
        """Put each request's prefix before its prompt; turns of a conversation share theirs."""
        groups = rng.integers(self.groups, size=len(requests.prompt_lens))
        for turn in np.flatnonzero(requests.previous_turn >= 0):
            groups[turn] = groups[requests.previous_turn[turn]]
        own = requests.segments
        if not len(own.counts):
            own = own_streams(requests.prompt_lens)
        starts = own.starts()
        return requests._replace(
            prompt_lens=requests.prompt_lens + np.int32(self.tokens),
            segments=Segments(
                own.counts + np.int32(1),
                np.insert(own.streams, starts, GROUP_STREAMS + groups),
                np.insert(own.lens, starts, self.tokens),
            ),
        )
