"""A decoder-only transformer over a paged KV cache: what its parts give each other."""

from __future__ import annotations  # the scheduler's process and the CLI do without torch

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class ForwardBatch(NamedTuple):
    """Which tokens of which requests a forward pass computes: ``T`` tokens of ``R`` requests, one
    request's after the other's. Tensors are on the model's device.

    ``positions`` int64 ``[T]``: each token's place in its request. ``slot_mapping`` int64 ``[T]``:
    where its key and value go, block · block_size + offset; -1: nowhere (padding). ``rows`` int32
    ``[R]``: each request's row of ``block_table`` int32 ``[num_rows, max_blocks]``. ``seq_lens``
    int32 ``[R]``: tokens in the cache after this pass; the request's own queries are the last of
    them. ``query_start`` int32 ``[R + 1]``: where its tokens begin. ``max_query_len``: 1 where
    every request has but one token, so that attention may take the way for decoding.
    ``max_seq_len``: the longest of ``seq_lens``, or what they may grow to.
    """

    positions: Tensor
    slot_mapping: Tensor
    rows: Tensor
    seq_lens: Tensor
    query_start: Tensor
    block_table: Tensor
    max_query_len: int
    max_seq_len: int


class DecodeTokens(NamedTuple):
    """The tokens that ``R`` decoding rows compute, ``width`` each, on the model's device.

    ``positions``, ``slot_mapping``, ``rows``, ``seq_lens``: as in `ForwardBatch`. int64 ``[T]``
    each: ``token_ids``, a row's last token over again; ``requests`` and ``outputs``, the request
    of each and its how many-th output token is sampled after it.
    """

    positions: Tensor
    slot_mapping: Tensor
    token_ids: Tensor
    requests: Tensor
    outputs: Tensor
    rows: Tensor
    seq_lens: Tensor


class HeadNorms(NamedTuple):
    """Weights ``[head_dim]`` of the root-mean-square norms of each head's queries and keys."""

    q: Tensor
    k: Tensor
    eps: float


class Ops(Protocol):
    """What a model leaves to the device: everything but its matrix products.

    A layer's cache is ``[2, num_blocks, num_kv_heads, block_size, head_dim]``, keys then values.
    """

    def add_layer_norm(
        self, x: Tensor, residual: Tensor | None, weight: Tensor, bias: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """The layer norm of ``x + residual`` ``[T, hidden]``, and that sum."""
        ...

    def add_rms_norm(
        self, x: Tensor, residual: Tensor | None, weight: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        """The same with the root-mean-square norm (Zhang and Sennrich 2019)."""
        ...

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        """``silu(gate) * up`` of ``[T, 2 * intermediate]``, the gate first."""
        ...

    def rotate_and_cache(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        norms: HeadNorms | None,
        cos_sin: Tensor | None,
        cache: Tensor,
        batch: ForwardBatch,
    ) -> None:
        """Norm and then rotate ``q`` ``[T, num_heads, head_dim]`` and ``k`` ``[T, num_kv_heads,
        head_dim]`` in place and write ``k`` and ``v`` to the layer's cache at
        ``batch.slot_mapping``.

        ``q``, ``k`` and ``v`` may be slices of one tensor: each has its own stride of a token.
        ``cos_sin`` float32 ``[max_positions, 2, head_dim / 2]``, cosines then sines; the pairs
        rotated are ``(i, i + head_dim / 2)``, as Hugging Face's Llama has them. None: no rotation,
        nor norms.
        """
        ...

    def decode_tokens(
        self,
        rows: Tensor,
        progress: Tensor,
        last_tokens: Tensor,
        block_table: Tensor,
        *,
        width: int,
        block_size: int,
    ) -> DecodeTokens:
        """What ``rows`` int64 ``[R]`` compute that decode ``width`` tokens each.

        By row: ``progress`` int64 ``[3, num_rows]``, tokens in the cache before the step, output
        tokens before it, and the request; ``last_tokens`` int64 and ``block_table`` int32, what
        each row sampled last, and its blocks.
        """
        ...

    def to_host(self, tokens: Tensor, ring: Tensor, turn: Tensor) -> None:
        """Store ``tokens`` int32 ``[R, width]`` as the first rows of ``ring[turn % len(ring)]``.

        ``ring`` int32 ``[depth, slots, width]`` is pinned memory of the host, which may read it
        once an event behind the call is there; ``turn`` int64 ``[1]`` is on the device.
        """
        ...

    def attention(self, q: Tensor, cache: Tensor, batch: ForwardBatch, scale: float) -> Tensor:
        """Causal attention ``[T, num_heads, head_dim]`` of the queries over what is cached of
        their own requests. Query head ``h`` reads key head ``h // (num_heads / num_kv_heads)``.
        """
        ...


class Parallel(Protocol):
    """The ranks between which a model's weights are divided (Megatron's tensor parallelism)."""

    rank: int
    size: int

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum of ``x`` over the ranks; may be ``x`` itself."""
        ...

    def all_gather(self, x: Tensor) -> Tensor:
        """The ranks' ``x`` side by side in their last dimension."""
        ...


class Model(Protocol):
    """A model's weights, or a rank's share of them; caches are one a layer, as `Ops` says."""

    def forward(self, token_ids: Tensor, batch: ForwardBatch, caches: list[Tensor]) -> Tensor:
        """The last hidden states ``[T, hidden]``, normed, for ``token_ids`` int64 ``[T]``."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """``[N, vocab_size]`` for ``[N, hidden]``, the same on every rank."""
        ...
