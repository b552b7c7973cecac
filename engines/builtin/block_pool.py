"""Paged KV-cache accounting: which physical blocks are free, and how many requests hold each."""

import numpy as np

from engines.protocol import BoolArray, EngineConfig, Int32Array


def blocks_for_longest(num_tokens: int, config: EngineConfig) -> int:
    """Blocks that a request of so many tokens holds at its end."""
    # Steps under way past the last token still write: at most two of them.
    return -(-(num_tokens + 2 * max(config.num_accepted)) // config.block_size)


def num_gpu_blocks(num_kv_tokens: int, config: EngineConfig) -> int:
    """Blocks of the KV cache: as many as were asked for, else all that hold so many tokens."""
    return config.num_gpu_blocks_override or num_kv_tokens // config.block_size


def check_room(num_blocks: int, config: EngineConfig) -> None:
    """Raise ValueError where the longest request does not fit into so many blocks."""
    needed = blocks_for_longest(config.max_model_len, config)
    if needed > num_blocks:
        raise ValueError(
            f"KV cache of {num_blocks} blocks: a request of {config.max_model_len} tokens needs "
            f"{needed}; give more with --axis num-gpu-blocks-override, or ask for fewer tokens"
        )


class BlockPool:
    """Free blocks in the order in which they were given back; the one free longest goes first.

    ``ref_cnt`` int32 ``[num_blocks]``: requests that hold a block, as in vLLM.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.num_free = num_blocks
        self.ref_cnt = np.zeros(num_blocks, np.int32)
        # A block that is touched while free leaves a stale entry behind: of its entries the one
        # at `_place` counts. Twice the room makes moving them up to the front rare.
        self._queue = np.zeros(2 * num_blocks, np.int32)
        self._place = np.arange(num_blocks)
        self._queue[:num_blocks] = self._place
        self._head, self._tail = 0, num_blocks

    def allocate(self, count: int) -> Int32Array:
        """Take ``count`` blocks, int32 ``[count]``. Raises MemoryError where there are fewer."""
        if count > self.num_free:
            raise MemoryError(f"{count} KV blocks wanted, {self.num_free} free")
        end = self._head + count
        blocks = self._queue[self._head : end].copy()
        if not (self._place[blocks] == np.arange(self._head, end)).all():
            places = self._head + np.flatnonzero(self._counts())[:count]
            blocks = self._queue[places]
            end = int(places[-1]) + 1
        self._head = end
        self._place[blocks] = -1
        self.ref_cnt[blocks] = 1
        self.num_free -= count
        return blocks

    def touch(self, blocks: Int32Array) -> None:
        """One more request holds each of ``blocks``, all different; free ones are free no more."""
        self.num_free -= int((self.ref_cnt[blocks] == 0).sum())
        self.ref_cnt[blocks] += 1
        self._place[blocks] = -1

    def free(self, blocks: Int32Array) -> None:
        """One request fewer for each; a block may stand there once for each that lets go of it.

        Those that nobody holds are free, in the order given. Raises ValueError where a block
        would have fewer than none.
        """
        held = self.ref_cnt[blocks]
        if held.max(initial=0) > 1:
            freed = self._let_go(blocks)
        elif held.min(initial=1) < 1 or self._repeats(blocks):
            raise _given_back_twice(blocks, held)
        else:
            self.ref_cnt[blocks] = 0
            freed = blocks
        if self._tail + len(freed) > len(self._queue):
            self._move_up()
        end = self._tail + len(freed)
        self._queue[self._tail : end] = freed
        self._place[freed] = np.arange(self._tail, end)
        self._tail = end
        self.num_free += len(freed)

    def _let_go(self, blocks: Int32Array) -> Int32Array:
        """One holder fewer for each, where some are shared; those that are free now."""
        np.subtract.at(self.ref_cnt, blocks, 1)
        left = self.ref_cnt[blocks]
        if (left < 0).any():
            np.add.at(self.ref_cnt, blocks, 1)
            raise _given_back_twice(blocks, self.ref_cnt[blocks])
        freed: Int32Array = blocks[left == 0]
        _, first = np.unique(freed, return_index=True)
        return freed if len(first) == len(freed) else freed[np.sort(first)]

    def _repeats(self, blocks: Int32Array) -> bool:
        """Whether one stands in ``blocks``, none of which is free, twice: found without sorting."""
        order = np.arange(len(blocks))
        self._place[blocks] = order
        repeats = bool((self._place[blocks] != order).any())
        self._place[blocks] = -1
        return repeats

    def _counts(self) -> BoolArray:
        """Whether each entry of the queue is its block's own."""
        places = np.arange(self._head, self._tail)
        own: BoolArray = self._place[self._queue[self._head : self._tail]] == places
        return own

    def _move_up(self) -> None:
        kept = self._queue[self._head : self._tail][self._counts()]
        self._head, self._tail = 0, len(kept)
        self._queue[: len(kept)] = kept
        self._place[kept] = np.arange(len(kept))


def _given_back_twice(blocks: Int32Array, held: Int32Array) -> ValueError:
    """Names those that stand in ``blocks`` more often than somebody holds them."""
    each, first, times = np.unique(blocks, return_index=True, return_counts=True)
    return ValueError(f"KV blocks given back twice: {each[times > held[first]].tolist()}")
