"""The model on a GPU: graphs for decoding, rows that stay there, tokens that are read later."""

import time
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engines.builtin.block_pool import blocks_for_longest
from engines.builtin.device import DeviceBatch
from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.model import Parallel
from engines.builtin.model.ceilings import Ceilings
from engines.builtin.model.forward import ForwardPass
from engines.builtin.model.graphed_decode import GraphedDecode
from engines.builtin.model.joined_steps import PartOfStep, RowsOfStep, joined_step
from engines.builtin.model.kernels import TritonOps
from engines.builtin.model.kernels.gumbel import sample
from engines.builtin.model.pass_inputs import Array, PassBuilder, PassInputs
from engines.builtin.model.staging import Staging
from engines.builtin.model.warm_up import warm_up_passes
from engines.builtin.model.work import Work
from engines.protocol import EngineConfig, Int32Array, ReadyDevice

_MEMORY_SHARE = 0.9
"""vLLM's ``gpu_memory_utilization``."""
_COPY_BYTES, _MATMUL_SIZE = 1 << 30, 8192


class _Turn(NamedTuple):
    """What a pass under way holds until it has been read: two steps can be.

    ``tokens`` is the memory of ``pinned``, where an eager pass's come to.
    """

    pinned: Tensor
    tokens: Int32Array
    begun: torch.cuda.Event
    computed: torch.cuda.Event
    copied: torch.cuda.Event


class _Running:
    """A launched step: its tokens come to pinned memory behind the host's back."""

    __slots__ = ("_parts", "_turn", "logprobs", "num_tokens", "step_seconds", "tokens")

    def __init__(
        self, turn: _Turn, num_tokens: Int32Array | None, parts: Sequence[PartOfStep]
    ) -> None:
        self.num_tokens = num_tokens
        self.tokens = parts[0].tokens
        self.logprobs: DeviceLogprobs | None = None
        self.step_seconds = 0.0
        self._turn = turn
        self._parts = parts

    def wait(self) -> tuple[int, int]:
        """Block until the tokens are there; the GIL is free meanwhile."""
        begin = time.perf_counter_ns()
        self._turn.copied.synchronize()
        blocked = time.perf_counter_ns() - begin
        self.step_seconds = self._turn.begun.elapsed_time(self._turn.computed) / 1e3
        self.tokens, self.logprobs = joined_step(self._parts)
        return blocked, 0


class CudaModel:
    """A device of one GPU, or one rank of several."""

    def __init__(self, config: EngineConfig, parallel: Parallel) -> None:
        self._device = torch.device("cuda", parallel.rank)
        self._seconds: dict[str, float] = {}
        self._beside_cache = inf
        self._began = time.perf_counter()
        torch.cuda.set_device(self._device)
        self._ends("context")
        self._config = config
        ops = TritonOps()
        try:
            self._forward = ForwardPass(config, parallel, self._device, ops, sample)
        except torch.cuda.OutOfMemoryError:
            total = torch.cuda.get_device_properties(self._device).total_memory
            raise ValueError(
                f"{config.model}: its weights do not fit into the {total / 1e9:.0f} GB of the GPU; "
                "take a smaller --axis model or more of them (--axis tensor-parallel)"
            ) from None
        self._ends("weights")
        self._builder = PassBuilder(config)
        self._work = Work(self._forward.config, self._forward.dtype.itemsize, parallel.size)
        self._ceilings = Ceilings(self._device, self._forward.dtype, _COPY_BYTES, _MATMUL_SIZE)
        most_launched = 2 * config.num_scheduler_steps
        self._staging = Staging(self._device, most_launched)
        self._stream = torch.cuda.current_stream(self._device)
        shape = (config.max_num_seqs, max(config.num_accepted))
        self._turns = [
            _Turn(
                pinned := torch.empty(shape, dtype=torch.int32, pin_memory=True),
                pinned.numpy(),
                torch.cuda.Event(enable_timing=True),
                torch.cuda.Event(enable_timing=True),
                torch.cuda.Event(),
            )
            for _ in range(most_launched)
        ]
        self._turn = 0
        # A row beyond the slots is nobody's: what pads a graph reads and writes there.
        self._nobody = config.max_num_seqs
        longest = blocks_for_longest(config.max_model_len, config)
        shape = (config.max_num_seqs + 1, longest)
        self._block_table = torch.zeros(shape, dtype=torch.int32, device=self._device)
        self._graphed: GraphedDecode | None = None
        if not config.enforce_eager:
            self._graphed = GraphedDecode(
                config, self._forward, ops, self._block_table, self._nobody, most_launched
            )

    def _ends(self, stage: str) -> None:
        """A stage of building it, on the GPU as well."""
        torch.cuda.synchronize(self._device)
        began, self._began = self._began, time.perf_counter()
        self._seconds[stage] = self._began - began

    def num_kv_tokens(self, config: EngineConfig) -> int:
        """Every row at its longest, or what nine tenths of the memory leave beside all else; the
        blocks that were asked for, whatever else is on the GPU.

        Raises ValueError where what is left is less than one request takes.
        """
        room = self._room_for_cache()  # runs each kernel, so that none is compiled later
        self._ends("kernels")
        if config.num_gpu_blocks_override:
            return config.num_gpu_blocks_override * config.block_size
        longest = blocks_for_longest(config.max_model_len, config) * config.block_size
        held = int(room / self._forward.kv_bytes_per_token)
        if held < longest:
            raise ValueError(
                f"{config.model} leaves {max(0.0, room) / 1e9:.1f} GB of the GPU for the KV cache: "
                f"no sequence of {config.max_model_len} tokens fits; take a smaller --axis model, "
                "--axis max-num-batched-tokens or --batch-size, or shorter requests"
            )
        return min(config.max_num_seqs * longest, held)

    def _room_for_cache(self) -> float:
        """Bytes, by steps of all kinds over a cache of one block, the greatest among them.

        The graphs' pool keeps what their largest takes, beside whatever runs eagerly.
        """
        captured = 0
        try:
            self._forward.allocate_cache(1)
            with torch.inference_mode():
                torch.cuda.reset_peak_memory_stats(self._device)
                for inputs in warm_up_passes(self._config, self._nobody):
                    tensors = _narrowed(inputs.brought(self._staging.bring))
                    self._forward.step(tensors, self._block_table)
                    # There are buffers to copy from for as many passes as can be under way.
                    torch.cuda.synchronize(self._device)
                peak = torch.cuda.max_memory_allocated(self._device)
                if self._graphed is not None:
                    torch.cuda.reset_peak_memory_stats(self._device)
                    held = torch.cuda.memory_allocated(self._device)
                    self._graphed.run_largest()
                    captured = torch.cuda.max_memory_allocated(self._device) - held
            torch.cuda.synchronize(self._device)
        except torch.cuda.OutOfMemoryError:
            return 0.0
        finally:
            self._forward.release_cache()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(self._device)
        others = total - free - torch.cuda.memory_reserved(self._device)
        self._beside_cache = others + peak + captured
        return total * _MEMORY_SHARE - self._beside_cache

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Lay it out, and capture the graphs over it. An engine as large takes what lies beside
        the cache again: what is not its own of that is a context, and perhaps another program's.
        """
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
                f"{config.max_model_len} tokens fit; give fewer --axis num-gpu-blocks-override"
            ) from None
        self._block_table[self._nobody] = num_blocks
        if self._graphed is not None:
            with torch.inference_mode():
                self._graphed.capture()
        self._ends("capture")
        _, total = torch.cuda.mem_get_info(self._device)
        num_fit = int(total * _MEMORY_SHARE / (self._beside_cache + num_bytes))
        return ReadyDevice(max(1, num_fit), self._seconds)

    def launch(self, batch: DeviceBatch) -> _Running:
        """Queue all of it on the GPU; the host is free at once."""
        assert batch.scheduled is not None
        new = batch.scheduled.new
        if new.rows:
            self._builder.admit(new)
            if self._graphed is not None:
                self._graphed.forget()
        num_tokens = self._builder.num_tokens(batch)
        self._turn = (self._turn + 1) % len(self._turns)
        turn = self._turns[self._turn]
        parts = self._run(RowsOfStep(None, batch, num_tokens), turn)
        if parts[0].logprobs is not None:
            parts = [each.fetched() for each in parts]
        turn.copied.record(self._stream)
        self._work.add(batch.num_scheduled, batch.context, sum(each.num_sampled for each in parts))
        return _Running(turn, num_tokens, parts)

    def _run(self, step: RowsOfStep, turn: _Turn) -> list[PartOfStep]:
        """All rows: those that decode by a graph, and what is left beside them in one pass.

        ``turn.begun`` is recorded when all of it lies where it is computed from, ``turn.computed``
        right behind the last of it: an idle GPU counts what the host does between the two.
        """
        graphed, parts = self._graphed, []
        replayed, eager = self._divided(step)
        arrays: list[Array] = []
        inputs = None
        if graphed is not None and replayed is not None:
            arrays += graphed.changes(replayed)
        if eager is not None:
            inputs = self._builder.build(eager.batch).inputs
            if graphed is not None:
                arrays.append(graphed.progress(eager))
        tensors, brought = self._bring(step.batch, inputs, arrays)
        if graphed is not None and eager is not None:
            graphed.note(brought.pop())
        if graphed is not None and replayed is not None:
            parts.append(graphed.replay(replayed, brought, turn.begun, turn.computed))
        else:
            turn.begun.record(self._stream)
        if eager is not None and inputs is not None and tensors is not None:
            # After the rows that decode: a prompt may begin with a block that one of them fills.
            with torch.inference_mode():
                tokens, logprobs = self._forward.step(tensors, self._block_table)
            turn.computed.record(self._stream)
            num_rows = len(tokens)
            turn.pinned[:num_rows].copy_(tokens, non_blocking=True)
            outputs = inputs.sampled.outputs
            parts.append(
                PartOfStep(eager.places, turn.tokens[:num_rows], len(outputs), logprobs, outputs)
            )
        return parts

    def _divided(self, step: RowsOfStep) -> tuple[RowsOfStep | None, RowsOfStep | None]:
        """Rows that decode by a graph, and what is left beside them."""
        scheduled = step.batch.scheduled
        assert scheduled is not None
        if self._graphed is None:
            return None, step
        if self._graphed.repeats(scheduled.rows):
            return step, None
        whole = self._builder.whole_decodes(step.batch)
        if whole.all():
            return step, None
        if not whole.any():
            return None, step
        return step.taken(np.flatnonzero(whole)), step.taken(np.flatnonzero(~whole))

    def _bring(
        self, batch: DeviceBatch, inputs: PassInputs[Array] | None, others: Sequence[Array]
    ) -> tuple[PassInputs[Tensor] | None, list[Tensor]]:
        """Both on the device, in one copy if there is anything, and the blocks that are given out
        in the table.
        """
        scheduled = batch.scheduled
        assert scheduled is not None
        blocks: tuple[Array, ...] = ()
        if len(scheduled.block_ids):
            blocks = scheduled.block_rows, scheduled.block_positions, scheduled.block_ids
        if inputs is None and not blocks and not others:
            return None, []
        first = [*blocks, *others]
        brought: list[Tensor] = []

        def bring(arrays: Sequence[Array]) -> list[Tensor]:
            brought.extend(self._staging.bring([*first, *arrays]))
            return brought[len(first) :]

        tensors = None
        if inputs is None:
            bring([])
        else:
            tensors = _narrowed(inputs.brought(bring))
        if blocks:
            rows, positions, ids = brought[:3]
            self._block_table[rows, positions] = ids.int()
        return tensors, brought[len(blocks) : len(first)]

    def stats(self) -> dict[str, float]:
        """Work so far, and what the GPU sustains."""
        return self._work.done() | self._ceilings.since_last_asked()


def _narrowed(wide: PassInputs[Tensor]) -> PassInputs[Tensor]:
    """As the kernels have it; everything travels as int64."""
    return wide._replace(
        rows=wide.rows.int(), seq_lens=wide.seq_lens.int(), query_start=wide.query_start.int()
    )
