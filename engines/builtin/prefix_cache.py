"""Full blocks found again by what stands in them and before them, as in vLLM's prefix caching."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

import numpy as np

from engines.builtin.block_pool import BlockPool
from engines.builtin.request_table import Request
from engines.protocol import Int32Array


def hash_blocks(parent: bytes, token_ids: Int32Array, block_size: int) -> Iterator[bytes]:
    """The hash of each full block of ``token_ids``; ``parent`` is that of the block before."""
    data = token_ids.tobytes()
    size = block_size * token_ids.itemsize
    for end in range(size, len(data) + 1, size):
        parent = sha256(parent + data[end - size : end]).digest()
        yield parent


def hash_blocks_of(
    request: Request, count: int, block_size: int, output_token_ids: Callable[[int], Int32Array]
) -> None:
    """Let ``request.block_hashes`` cover its first ``count`` blocks.

    ``output_token_ids(start)`` are its output tokens from there on, int32.
    """
    hashes = request.block_hashes
    if len(hashes) >= count:
        return
    start = len(hashes) * block_size
    prompt = request.prompt_token_ids
    tokens = prompt[start:]
    if count * block_size > len(prompt):
        tokens = np.concatenate([tokens, output_token_ids(max(0, start - len(prompt)))])
    parent = hashes[-1] if hashes else b""
    tokens = tokens[: count * block_size - start]
    # A tuple of bytes is nothing to the collector.
    request.block_hashes = (*hashes, *hash_blocks(parent, tokens, block_size))


class PrefixCache:
    """Which block holds which tokens. A block stays here when nobody holds it any more, until its
    memory is taken for others. ``num_queries`` and ``num_hits`` count tokens of requests.
    """

    def __init__(self, pool: BlockPool) -> None:
        self._pool = pool
        self._block_of: dict[bytes, int] = {}
        self._hash_of: dict[int, bytes] = {}
        self.num_queries = 0
        self.num_hits = 0

    def find(self, block_hashes: Iterable[bytes]) -> Int32Array:
        """The blocks of the first hashes, up to the first that is not here, int32."""
        blocks = []
        for block_hash in block_hashes:
            block = self._block_of.get(block_hash)
            if block is None:
                break
            blocks.append(block)
        return np.array(blocks, np.int32)

    def allocate(self, count: int) -> Int32Array:
        """As `BlockPool.allocate`; what the blocks held is forgotten."""
        blocks = self._pool.allocate(count)
        for block in blocks.tolist():
            if old := self._hash_of.pop(block, None):
                del self._block_of[old]
        return blocks

    def cache_full_blocks(self, blocks: Int32Array, block_hashes: Iterable[bytes]) -> None:
        """Make blocks findable; of several that hold the same the first is found."""
        for block, block_hash in zip(blocks.tolist(), block_hashes, strict=True):
            if block_hash not in self._block_of:
                self._block_of[block_hash] = block
                self._hash_of[block] = block_hash
