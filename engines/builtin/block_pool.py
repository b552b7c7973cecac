"""Paged KV-cache accounting: which physical blocks are free."""

import numpy as np

from engines.protocol import Int32Array


class BlockPool:
    """A stack of free block ids; `allocate` and `free` move whole arrays of them."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._stack = np.arange(num_blocks - 1, -1, -1, dtype=np.int32)
        self._is_free = np.ones(num_blocks, np.bool_)
        self.num_free = num_blocks

    def allocate(self, count: int) -> Int32Array:
        """Take ``count`` blocks, int32 ``[count]``. Raises MemoryError where there are fewer."""
        if count > self.num_free:
            raise MemoryError(f"{count} KV blocks wanted, {self.num_free} free")
        self.num_free -= count
        blocks = self._stack[self.num_free : self.num_free + count].copy()
        self._is_free[blocks] = False
        return blocks

    def free(self, blocks: Int32Array) -> None:
        """Give blocks back. Raises ValueError where one of them is free already."""
        if self._is_free[blocks].any():
            raise ValueError(
                f"KV blocks given back twice: {blocks[self._is_free[blocks]].tolist()}"
            )
        self._is_free[blocks] = True
        end = self.num_free + len(blocks)
        self._stack[self.num_free : end] = blocks
        self.num_free = end
