"""A forward pass of zero length: what is left is the host path alone."""

from typing import TYPE_CHECKING

from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_sampler import ScriptedSampler
from engines.protocol import EngineConfig

if TYPE_CHECKING:
    import torch

    from engines.builtin.logprobs import DeviceLogprobs


class _Done:
    __slots__ = ("logprobs", "step_seconds", "tokens")

    def __init__(self, tokens: "torch.Tensor", logprobs: "DeviceLogprobs | None") -> None:
        self.tokens = tokens
        self.logprobs = logprobs
        self.step_seconds = 0.0

    def wait(self) -> tuple[int, int]:
        """Nothing to wait for."""
        return 0, 0


class NullDevice:
    """Samples at launch; a step is over when it begins."""

    needs_profile = False

    def __init__(self, config: EngineConfig) -> None:
        self._sampler = ScriptedSampler(config)

    @staticmethod
    def num_kv_tokens(config: EngineConfig) -> int:
        """Enough for every row at its longest: memory is no limit where there is none."""
        margin = 2 * max(config.num_accepted) + config.block_size
        return config.max_num_seqs * (config.max_model_len + margin)

    def launch(self, batch: DeviceBatch) -> _Done:
        """Sample now; the handle is done."""
        return _Done(*self._sampler.sample(batch))
