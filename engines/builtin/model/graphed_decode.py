"""Rows that decode, on the device from step to step: what a CUDA graph replays."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engines.builtin.model import ForwardBatch, Ops
from engines.builtin.model.forward import ForwardPass
from engines.builtin.model.graphs import DecodeGraphs
from engines.builtin.model.joined_steps import PartOfStep, RowsOfStep
from engines.builtin.model.pass_inputs import Array
from engines.builtin.model.sampler import TokenLogprobs
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.protocol import EngineConfig, Int32Array


class GraphedDecode:
    """Each row takes its last token, and computes as many as a decode step verifies.

    How far each row is stays on the device, where a replay moves it on: a row comes here with its
    first eager step, and a batch is sent only where its rows are others than in the replay before.
    It is padded with rows of ``nobody``, a row of ``block_table`` int32 whose block is no request's
    and which never moves on. A replay's tokens go to pinned memory, of ``depth`` replays in turn.
    """

    def __init__(
        self,
        config: EngineConfig,
        forward: ForwardPass,
        ops: Ops,
        block_table: Tensor,
        nobody: int,
        depth: int,
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
        self._progress = torch.zeros((3, slots + 1), dtype=torch.int64, device=device)
        # Rows, and how many tokens the drafts of each yield; of padding none.
        self._batch = torch.zeros((2, slots), dtype=torch.int64, device=device)
        self._batch[0] = nobody
        self._rows = b""
        ring = torch.zeros((depth, slots, width), dtype=torch.int32, pin_memory=True)
        self._ring, self._host_ring = ring, ring.numpy()
        self._turn = torch.zeros(1, dtype=torch.int64, device=device)
        self._host_turn = 0
        self._stream = torch.cuda.current_stream(device)

    def run_largest(self) -> None:
        """The step that takes the most memory, once and captured nowhere."""
        self._run(self._graphs.sizes[-1])

    def capture(self) -> None:
        """All sizes. Raises ValueError where memory runs out."""
        self._graphs.capture(self._run)
        self._turn.zero_()

    def repeats(self, rows: Int32Array) -> bool:
        """Whether all of them decode without drafts and the device has them: they are those of the
        replay before, and none was given to another request since.
        """
        return rows.tobytes() == self._rows

    def forget(self) -> None:
        """Rows are given to other requests."""
        self._rows = b""

    def changes(self, step: RowsOfStep) -> list[Array]:
        """What `replay` must be sent: int64 ``[2, padded size]``, or nothing where it is there."""
        scheduled = step.batch.scheduled
        assert scheduled is not None
        if self.repeats(scheduled.rows):
            return []
        if self._width == 1:
            self._rows = scheduled.rows.tobytes()
        num_reqs = len(scheduled.rows)
        batch = np.zeros((2, self._graphs.size_for(num_reqs)), np.int64)
        batch[0] = self._nobody
        batch[0, :num_reqs] = scheduled.rows
        batch[1, :num_reqs] = 1 if step.num_tokens is None else step.num_tokens
        return [batch]

    def progress(self, step: RowsOfStep) -> Array:
        """How far rows are after an eager step, for `note`: int64 ``[4, num_reqs]``."""
        batch = step.batch
        assert batch.scheduled is not None
        after = batch.after(step.num_tokens)
        return np.stack([batch.scheduled.rows, *after, batch.request_index])

    def note(self, progress: Tensor) -> None:
        """Take in what `progress` says, flat."""
        rows, *after = progress.view(4, -1)
        self._progress[:, rows] = torch.stack(after)

    def replay(
        self,
        step: RowsOfStep,
        changes: Sequence[Tensor],
        begun: torch.cuda.Event,
        computed: torch.cuda.Event,
    ) -> PartOfStep:
        """The next step of its rows. The host has the tokens once ``computed`` is there; the next
        replay overwrites the log-probabilities.

        ``begun`` and ``computed`` are recorded with nothing but the graph between them: an idle
        GPU counts what the host does there.
        """
        num_reqs, width = len(step.batch.context), self._width
        size = self._graphs.size_for(num_reqs)
        for each in changes:
            self._batch[:, :size].copy_(each.view(2, size))
        begun.record(self._stream)
        logprobs = self._graphs.replay(size)
        computed.record(self._stream)
        tokens = self._host_ring[self._host_turn, :num_reqs]
        self._host_turn = (self._host_turn + 1) % len(self._host_ring)
        outputs = None
        if logprobs is not None:
            logprobs = TokenLogprobs(*(each[: num_reqs * width] for each in logprobs))
            outputs = np.arange(num_reqs * width)
            if step.num_tokens is not None:
                outputs[outputs % width >= step.num_tokens.repeat(width)] = -1
        return PartOfStep(step.places, tokens, num_reqs * width, logprobs, outputs)

    def _run(self, size: int) -> TokenLogprobs | None:
        """A decode step of so many rows; nothing in it waits for the GPU."""
        forward, width = self._forward, self._width
        rows, accepted = self._batch[:, :size]
        computed = self._ops.decode_tokens(
            rows,
            self._progress,
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
            last = tokens.gather(1, (accepted[:, None] - 1).clamp_min(0))[:, 0]
            tokens = tokens.masked_fill(self._columns >= accepted[:, None], PLACEHOLDER_TOKEN_ID)
        forward.last_tokens.index_copy_(0, rows, last.long())
        self._progress[:2].index_add_(1, rows, accepted.expand(2, size))
        self._ops.to_host(tokens, self._ring, self._turn)
        self._turn.add_(1)
        return logprobs
