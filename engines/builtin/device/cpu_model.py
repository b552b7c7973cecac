"""The model on the CPU: a step is computed when it is waited for."""

import time
from collections.abc import Sequence

import numpy as np
import psutil
import torch

from engines.builtin.block_pool import blocks_for_longest
from engines.builtin.device import DeviceBatch
from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.model import Parallel
from engines.builtin.model.ceilings import Ceilings
from engines.builtin.model.forward import ForwardPass
from engines.builtin.model.gumbel_reference import sample_reference
from engines.builtin.model.host_logprobs import host_logprobs
from engines.builtin.model.pass_inputs import Array, Pass, PassBuilder, PassInputs
from engines.builtin.model.reference import ReferenceOps
from engines.builtin.model.work import Work
from engines.protocol import EngineConfig, Int32Array, ReadyDevice

_MEMORY_SHARE = 0.5
"""Of the memory that is free: others need some too."""
_COPY_BYTES, _MATMUL_SIZE = 1 << 28, 1024
_CPU = torch.device("cpu")


class _Deferred:
    """A step that is computed when it is waited for.

    A thread beside the scheduler's would fight with it for the GIL at every operation, and the
    times of neither would mean anything.
    """

    __slots__ = (
        "_block_table",
        "_inputs",
        "_model",
        "logprobs",
        "num_tokens",
        "step_seconds",
        "tokens",
    )

    def __init__(self, model: "CpuModel", asked: Pass, block_table: Int32Array) -> None:
        self._model = model
        self._inputs, self.num_tokens = asked
        self._block_table = block_table
        self.tokens: Int32Array
        self.logprobs: DeviceLogprobs | None
        self.step_seconds = 0.0

    def wait(self) -> tuple[int, int]:
        """Compute it; all the time that it takes is the device's."""
        begin = time.perf_counter_ns()
        self.tokens, self.logprobs = self._model.compute(self._inputs, self._block_table)
        elapsed = time.perf_counter_ns() - begin
        self.step_seconds = elapsed / 1e9
        return elapsed, 0


class CpuModel:
    """float32 unless asked otherwise; attention by gathering keys."""

    def __init__(self, config: EngineConfig, parallel: Parallel) -> None:
        # Ranks beside each other would fight for the cores.
        torch.set_num_threads(max(1, torch.get_num_threads() // parallel.size))
        self._block_size = config.block_size
        self._forward = ForwardPass(config, parallel, _CPU, ReferenceOps(), sample_reference)
        self._builder = PassBuilder(config)
        self._work = Work(self._forward.config, self._forward.dtype.itemsize, parallel.size)
        self._ceilings = Ceilings(_CPU, self._forward.dtype, _COPY_BYTES, _MATMUL_SIZE)

    def num_kv_tokens(self, config: EngineConfig) -> int:
        """Every row at its longest, or what half of the free memory holds."""
        longest = blocks_for_longest(config.max_model_len, config) * config.block_size
        room = psutil.virtual_memory().available * _MEMORY_SHARE
        return min(config.max_num_seqs * longest, int(room / self._forward.kv_bytes_per_token))

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Lay it out."""
        self._forward.allocate_cache(num_blocks)
        return ReadyDevice()

    def launch(self, batch: DeviceBatch) -> _Deferred:
        """Note what is to be computed; nothing of it changes afterwards."""
        assert batch.block_table is not None
        assert batch.scheduled is not None
        self._builder.admit(batch.scheduled.new)
        asked = self._builder.build(batch)
        inputs = asked.inputs
        self._work.add(batch.num_scheduled, batch.context, len(inputs.sampled.places))
        width = -(-int(inputs.seq_lens.max()) // self._block_size)
        # The rows' own tables, as they are now: the next launch may change the runner's.
        block_table = batch.block_table[inputs.rows, :width]
        rows = np.arange(len(inputs.rows), dtype=np.int32)
        return _Deferred(self, asked._replace(inputs=inputs._replace(rows=rows)), block_table)

    def compute(
        self, inputs: PassInputs[Array], block_table: Int32Array
    ) -> tuple[Int32Array, DeviceLogprobs | None]:
        """A step's tokens, and their log-probabilities where they were asked for."""
        with torch.inference_mode():
            step = self._forward.step(inputs.brought(_as_tensors), torch.from_numpy(block_table))
        tokens: Int32Array = step.tokens.numpy()
        return tokens, host_logprobs(step.logprobs, inputs.sampled.outputs, tokens.shape)

    def stats(self) -> dict[str, float]:
        """Work so far, and what the CPU sustains."""
        return self._work.done() | self._ceilings.since_last_asked()


def _as_tensors(arrays: Sequence[Array]) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]
