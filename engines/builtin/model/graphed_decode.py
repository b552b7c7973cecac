"""Rows that decode, on static tensors: what a CUDA graph replays."""

import numpy as np
import torch
from torch import Tensor

from engines.builtin.device import DeviceBatch
from engines.builtin.model import ForwardBatch, Ops
from engines.builtin.model.forward import DeviceTokens, ForwardPass
from engines.builtin.model.graphs import DecodeGraphs
from engines.builtin.model.pass_inputs import Array
from engines.builtin.model.sampler import TokenLogprobs
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.protocol import EngineConfig, Int32Array, Int64Array


class GraphedDecode:
    """Each row takes its last token, and computes as many as a decode step verifies.

    A batch is padded with rows of ``nobody``, a row of ``block_table`` int32 whose block is no
    request's.
    """

    def __init__(
        self, config: EngineConfig, forward: ForwardPass, ops: Ops, block_table: Tensor, nobody: int
    ) -> None:
        self._forward, self._ops = forward, ops
        self._block_table = block_table
        self._block_size = config.block_size
        self._width = width = max(config.num_accepted)
        self._nobody = nobody
        self._graphs = DecodeGraphs(config.max_num_seqs)
        slots, device = config.max_num_seqs, block_table.device
        self._query_start = torch.arange(0, slots * width + 1, width, device=device).int()
        self._columns = torch.arange(width, device=device)
        self._tokens = torch.zeros((slots, width), dtype=torch.int32, device=device)
        self._inputs = torch.zeros((5, slots), dtype=torch.int64, device=device)
        self._inputs[0] = nobody
        self._inputs[1] = width
        self._inputs[4] = 1

    def run_largest(self) -> None:
        """The step that takes the most memory, once and captured nowhere."""
        self._run(self._graphs.sizes[-1])

    def capture(self) -> None:
        """All sizes. Raises ValueError where memory runs out."""
        self._graphs.capture(self._run)

    def inputs(self, batch: DeviceBatch, num_tokens: Int32Array | None) -> Array:
        """What `replay` takes of a batch, int64 ``[5, padded size]``, on the host.

        ``num_tokens`` int32 ``[num_reqs]``: how many each row's drafts yield; None: one each.
        """
        assert batch.scheduled is not None
        num_reqs = len(batch.context)
        inputs = np.zeros((5, self._graphs.size_for(num_reqs)), np.int64)
        inputs[0], inputs[1], inputs[4] = self._nobody, self._width, 1
        inputs[0, :num_reqs] = batch.scheduled.rows
        inputs[1, :num_reqs] = batch.context
        inputs[2, :num_reqs] = batch.request_index
        inputs[3, :num_reqs] = batch.position
        if num_tokens is not None:
            inputs[4, :num_reqs] = num_tokens
        return inputs

    def outputs(self, num_reqs: int, num_tokens: Int32Array | None) -> Int64Array:
        """Where the log-probabilities go of a batch's rows: see `Sampled.outputs`."""
        outputs = np.arange(num_reqs * self._width)
        if num_tokens is not None:
            outputs[outputs % self._width >= num_tokens.repeat(self._width)] = -1
        return outputs

    def replay(
        self, inputs: Tensor, num_reqs: int, begun: torch.cuda.Event, computed: torch.cuda.Event
    ) -> DeviceTokens:
        """The step of ``inputs``, int64 and flat; the next one overwrites what it returns.

        ``begun`` and ``computed`` are recorded with nothing but the graph between them: an idle
        GPU counts what the host does there.
        """
        size = len(inputs) // 5
        self._inputs[:, :size].copy_(inputs.view(5, size))
        begun.record()
        tokens, logprobs = self._graphs.replay(size)
        computed.record()
        if logprobs is not None:
            logprobs = TokenLogprobs(*(each[: num_reqs * self._width] for each in logprobs))
        return DeviceTokens(tokens[:num_reqs], logprobs)

    def _run(self, size: int) -> tuple[Tensor, TokenLogprobs | None]:
        """A decode step of so many rows; nothing in it waits for the GPU."""
        forward, width = self._forward, self._width
        inputs = self._inputs[:, :size]
        computed = self._ops.decode_tokens(
            inputs[:4],
            forward.last_tokens,
            self._block_table,
            width=width,
            block_size=self._block_size,
        )
        batch = ForwardBatch(
            computed.positions,
            computed.slot_mapping,
            computed.rows,
            computed.seq_lens,
            self._query_start[: size + 1],
            self._block_table,
            max_query_len=width,
            max_seq_len=self._block_table.shape[1] * self._block_size,
        )
        logits = forward.logits(computed.token_ids, batch, None)
        sampled, logprobs = forward.sample(logits, computed.requests, computed.outputs)
        tokens, last = sampled.view(size, width), sampled
        if width > 1:
            accepted = inputs[4, :, None]
            last = tokens.gather(1, accepted - 1)[:, 0]
            tokens = tokens.masked_fill(self._columns >= accepted, PLACEHOLDER_TOKEN_ID)
        forward.last_tokens.index_copy_(0, inputs[0], last.long())
        return self._tokens[:size].copy_(tokens), logprobs
