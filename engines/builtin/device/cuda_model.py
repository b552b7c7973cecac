"""The model on a GPU: graphs for decoding, tokens that stay there, a copy that is read later."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engines.builtin.block_pool import blocks_for_longest
from engines.builtin.device import DeviceBatch
from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.model import ForwardBatch, Parallel
from engines.builtin.model.ceilings import measure_ceilings
from engines.builtin.model.forward import ForwardPass, StepTokens
from engines.builtin.model.graphs import DecodeGraphs
from engines.builtin.model.host_logprobs import host_logprobs
from engines.builtin.model.kernels import TritonOps
from engines.builtin.model.kernels.gumbel import sample
from engines.builtin.model.largest_pass import largest_pass
from engines.builtin.model.pass_inputs import Array, PassBuilder, PassInputs
from engines.builtin.model.sampler import TokenLogprobs
from engines.builtin.model.staging import Staging
from engines.builtin.model.work import Work
from engines.protocol import EngineConfig, Int32Array, Int64Array

_MEMORY_SHARE = 0.9
"""vLLM's ``gpu_memory_utilization``."""
_COPY_BYTES, _MATMUL_SIZE = 1 << 30, 8192


class _Turn(NamedTuple):
    """What a pass under way holds until it has been read: two steps can be."""

    tokens: Tensor
    begun: torch.cuda.Event
    computed: torch.cuda.Event
    copied: torch.cuda.Event


class _Running:
    """A launched step: its tokens come to pinned memory behind the host's back."""

    __slots__ = ("_logprobs", "_places", "_turn", "logprobs", "num_tokens", "step_seconds",
                 "tokens")  # fmt: skip

    def __init__(
        self,
        turn: _Turn,
        num_reqs: int,
        num_tokens: Int32Array | None,
        places: Int64Array,
        logprobs: TokenLogprobs | None,
    ) -> None:
        self.num_tokens = num_tokens
        self.tokens = turn.tokens[:num_reqs]
        self.logprobs: DeviceLogprobs | None = None
        self.step_seconds = 0.0
        self._turn = turn
        self._places = places
        self._logprobs = logprobs

    def wait(self) -> tuple[int, int]:
        """Block until the copy is there; the GIL is free meanwhile."""
        begin = time.perf_counter_ns()
        self._turn.copied.synchronize()
        blocked = time.perf_counter_ns() - begin
        self.step_seconds = self._turn.begun.elapsed_time(self._turn.computed) / 1e3
        self.logprobs = host_logprobs(self._logprobs, self._places, self.tokens.shape)
        return blocked, 0


class CudaModel:
    """A device of one GPU, or one rank of several."""

    def __init__(self, config: EngineConfig, parallel: Parallel) -> None:
        self._device = torch.device("cuda", parallel.rank)
        torch.cuda.set_device(self._device)
        self._config = config
        try:
            self._forward = ForwardPass(config, parallel, self._device, TritonOps(), sample)
        except torch.cuda.OutOfMemoryError:
            total = torch.cuda.get_device_properties(self._device).total_memory
            raise ValueError(
                f"{config.model}: its weights do not fit into the {total / 1e9:.0f} GB of the GPU; "
                "take a smaller --model or more of them (--tensor-parallel)"
            ) from None
        self._builder = PassBuilder(config)
        self._work = Work(self._forward.config, self._forward.dtype.itemsize, parallel.size)
        self._ceilings: dict[str, float] | None = None
        self._staging = Staging(self._device)
        self._copy_stream = torch.cuda.Stream(self._device)
        width = max(config.num_accepted)
        self._turns = [
            _Turn(
                torch.empty((config.max_num_seqs, width), dtype=torch.int32, pin_memory=True),
                torch.cuda.Event(enable_timing=True),
                torch.cuda.Event(enable_timing=True),
                torch.cuda.Event(),
            )
            for _ in range(2 * config.num_scheduler_steps)
        ]
        self._turn = 0
        self._graphs: DecodeGraphs | None = None
        slots = config.max_num_seqs
        # A row beyond the slots is nobody's: what pads a graph reads and writes there.
        self._nobody = slots
        longest = blocks_for_longest(config.max_model_len, config)
        shape = (slots + 1, longest)
        self._block_table = torch.zeros(shape, dtype=torch.int32, device=self._device)
        self._graph_inputs = torch.zeros((4, slots), dtype=torch.int64, device=self._device)
        self._arange = torch.arange(slots + 1, dtype=torch.int32, device=self._device)
        self._graph_tokens = torch.zeros(slots, dtype=torch.int32, device=self._device)

    def num_kv_tokens(self, config: EngineConfig) -> int:
        """Every row at its longest, or what nine tenths of the memory leave beside all else.

        Raises ValueError where that is less than one request takes.
        """
        room = self._room_for_cache()
        longest = blocks_for_longest(config.max_model_len, config) * config.block_size
        held = int(room / self._forward.kv_bytes_per_token)
        if held < longest:
            raise ValueError(
                f"{config.model} leaves {max(0.0, room) / 1e9:.1f} GB of the GPU for the KV cache: "
                f"no sequence of {config.max_model_len} tokens fits; take a smaller --model, "
                "--max-num-batched-tokens or --batch-size, or shorter requests"
            )
        return min(config.max_num_seqs * longest, held)

    def _room_for_cache(self) -> float:
        """Bytes, by a step of the greatest size over a cache of one block."""
        torch.cuda.reset_peak_memory_stats(self._device)
        try:
            self._forward.allocate_cache(1)
            # Many short requests and one long one: prefill has a kernel for each.
            for config in (self._config, replace(self._config, max_num_seqs=1)):
                inputs = largest_pass(config, row=self._nobody)
                with torch.inference_mode():
                    self._forward.step(self._tensors(inputs, ()), self._block_table)
            torch.cuda.synchronize(self._device)
        except torch.cuda.OutOfMemoryError:
            return 0.0
        finally:
            self._forward.release_cache()
        peak = torch.cuda.max_memory_allocated(self._device)
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(self._device)
        others = total - free - torch.cuda.memory_reserved(self._device)
        return total * _MEMORY_SHARE - others - peak

    def initialize_cache(self, num_blocks: int) -> None:
        """Lay it out, and capture the graphs over it."""
        config = self._config
        num_bytes = (num_blocks + 1) * config.block_size * self._forward.kv_bytes_per_token
        try:
            self._forward.allocate_cache(num_blocks + 1)
        except torch.cuda.OutOfMemoryError:
            self._forward.release_cache()
            free, _ = torch.cuda.mem_get_info(self._device)
            longest = config.max_model_len * self._forward.kv_bytes_per_token
            raise ValueError(
                f"a KV cache of {num_blocks:,} blocks takes {num_bytes / 1e9:.1f} GB and "
                f"{free / 1e9:.1f} GB are free: {int(free / longest)} sequences of "
                f"{config.max_model_len} tokens fit; give fewer --num-gpu-blocks-override"
            ) from None
        self._block_table[self._nobody] = num_blocks
        self._graph_inputs[0] = self._nobody
        self._graph_inputs[1] = 1
        if not config.enforce_eager and max(config.num_accepted) == 1:
            self._graphs = DecodeGraphs(config.max_num_seqs)
            with torch.inference_mode():
                self._graphs.capture(self._decode)
        torch.cuda.synchronize(self._device)

    def _decode(self, size: int) -> tuple[Tensor, TokenLogprobs | None]:
        """A decode step on the static tensors; nothing in it waits for the GPU."""
        rows, seq_lens, requests, places = self._graph_inputs[:, :size]
        positions = seq_lens - 1
        block_size = self._config.block_size
        blocks = self._block_table[rows, positions // block_size].long()
        batch = ForwardBatch(
            positions,
            blocks * block_size + positions % block_size,
            rows.int(),
            seq_lens.int(),
            self._arange[: size + 1],
            self._block_table,
            1,
        )
        forward = self._forward
        logits = forward.logits(forward.last_tokens[rows], batch, None)
        tokens, logprobs = forward.sample(logits, requests, places)
        forward.last_tokens.index_copy_(0, rows, tokens.long())
        return self._graph_tokens[:size].copy_(tokens), logprobs

    def launch(self, batch: DeviceBatch) -> _Running:
        """Queue all of it on the GPU; the host is free at once."""
        scheduled = batch.scheduled
        assert scheduled is not None
        self._builder.admit(scheduled.new)
        stream = torch.cuda.current_stream()
        # The graphs' one buffer of tokens must be read before it is written again.
        stream.wait_event(self._turns[self._turn].copied)
        self._turn = (self._turn + 1) % len(self._turns)
        turn = self._turns[self._turn]
        turn.begun.record(stream)
        blocks = (scheduled.block_rows, scheduled.block_positions, scheduled.block_ids)
        num_reqs = len(scheduled.rows)
        places = np.arange(num_reqs)
        num_tokens = None
        with torch.inference_mode():
            if self._graphs is not None and self._builder.is_plain_decode(batch):
                step = self._replay(self._graphs, batch, blocks)
                seq_lens, num_sampled = batch.context.astype(np.int32), num_reqs
            else:
                inputs, num_tokens = self._builder.build(batch)
                step = self._forward.step(self._tensors(inputs, blocks), self._block_table)
                places = inputs.sampled.outputs
                seq_lens, num_sampled = inputs.seq_lens, len(inputs.sampled.places)
        self._work.add(batch.num_scheduled, seq_lens, num_sampled)
        turn.computed.record(stream)
        self._copy_stream.wait_event(turn.computed)
        with torch.cuda.stream(self._copy_stream):
            turn.tokens[:num_reqs].copy_(step.tokens, non_blocking=True)
            logprobs = step.logprobs
            if logprobs is not None:
                logprobs = TokenLogprobs(*(_to_pinned(each[: len(places)]) for each in logprobs))
            turn.copied.record(self._copy_stream)
        step.tokens.record_stream(self._copy_stream)
        return _Running(turn, num_reqs, num_tokens, places, logprobs)

    def _replay(
        self, graphs: DecodeGraphs, batch: DeviceBatch, blocks: tuple[Array, Array, Array]
    ) -> StepTokens:
        assert batch.scheduled is not None
        num_reqs = len(batch.scheduled.rows)
        size = graphs.size_for(num_reqs)
        inputs = np.zeros((4, size), np.int64)
        inputs[0], inputs[1] = self._nobody, 1
        inputs[0, :num_reqs] = batch.scheduled.rows
        inputs[1, :num_reqs] = batch.context
        inputs[2, :num_reqs] = batch.request_index
        inputs[3, :num_reqs] = batch.position
        *new_blocks, brought = self._staging.bring([*blocks, inputs])
        self._give_blocks(new_blocks)
        self._graph_inputs[:, :size].copy_(brought.view(4, size))
        tokens, logprobs = graphs.replay(size)
        return StepTokens(tokens[:num_reqs, None], logprobs)

    def _tensors(self, inputs: PassInputs[Array], blocks: tuple[Array, ...]) -> PassInputs[Tensor]:
        """A step's arrays on the device in one copy, with the blocks that are new in it."""

        def bring(arrays: Sequence[Array]) -> list[Tensor]:
            brought = self._staging.bring([*arrays, *blocks])
            self._give_blocks(brought[len(arrays) :])
            return brought[: len(arrays)]

        wide = inputs.brought(bring)
        return wide._replace(
            rows=wide.rows.int(), seq_lens=wide.seq_lens.int(), query_start=wide.query_start.int()
        )

    def _give_blocks(self, new_blocks: list[Tensor]) -> None:
        if new_blocks and len(new_blocks[0]):
            rows, positions, ids = new_blocks
            self._block_table[rows, positions] = ids.int()

    def stats(self) -> dict[str, float]:
        """Work so far, and the ceilings, measured when they are first asked for."""
        if self._ceilings is None:
            self._ceilings = measure_ceilings(
                self._device, self._forward.dtype, _COPY_BYTES, _MATMUL_SIZE
            )
        return self._work.done() | self._ceilings


def _to_pinned(tensor: Tensor) -> Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(
        tensor, non_blocking=True
    )
