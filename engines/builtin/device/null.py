"""A forward pass of zero length: what is left is the host path alone."""

from typing import TYPE_CHECKING

from engines.builtin.block_pool import check_room, num_gpu_blocks
from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_sampler import ScriptedSampler, ScriptedTokens
from engines.protocol import EngineConfig, ReadyDevice

if TYPE_CHECKING:
    from engines.builtin.model import Parallel


class _Done:
    __slots__ = ("logprobs", "num_tokens", "step_seconds", "tokens")

    def __init__(self, sampled: ScriptedTokens) -> None:
        self.num_tokens, self.tokens, self.logprobs = sampled
        self.step_seconds = 0.0

    def wait(self) -> tuple[int, int]:
        """Nothing to wait for."""
        return 0, 0


class NullDevice:
    """Samples at launch; a step is over when it begins."""

    needs_profile = False
    has_model = False
    backend = ""
    takes_gpu = False

    def __init__(self, config: EngineConfig) -> None:
        self._sampler = ScriptedSampler(config)

    @staticmethod
    def build(config: EngineConfig, parallel: "Parallel") -> "NullDevice":
        """It; what is scripted is not divided."""
        return NullDevice(config)

    @staticmethod
    def check(config: EngineConfig) -> None:
        """Raise ValueError where so few blocks were asked for that a request does not fit."""
        check_room(num_gpu_blocks(NullDevice.num_kv_tokens(config), config), config)

    @staticmethod
    def num_kv_tokens(config: EngineConfig) -> int:
        """Enough for every row at its longest: memory is no limit where there is none."""
        margin = 2 * max(config.num_accepted) + config.block_size
        return config.max_num_seqs * (config.max_model_len + margin)

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Nothing is kept."""
        return ReadyDevice()

    def launch(self, batch: DeviceBatch) -> _Done:
        """Sample now; the handle is done."""
        return _Done(self._sampler.sample(batch))

    def stats(self) -> dict[str, float]:
        """Nothing: there is no arithmetic."""
        return {}
