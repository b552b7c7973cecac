"""A forward pass that is a wait: its length comes from a profile, the host path is the real one."""

import time
from typing import TYPE_CHECKING

import numpy as np

from engines.builtin.block_pool import check_room, num_gpu_blocks
from engines.builtin.device import DeviceBatch
from engines.builtin.device.profile import load_profile
from engines.builtin.device.scripted_sampler import ScriptedSampler, ScriptedTokens
from engines.deadline import hold_until, tighten_timer, wait_until
from engines.protocol import EngineConfig, ReadyDevice

if TYPE_CHECKING:
    from engines.builtin.model import Parallel


class _Running:
    __slots__ = ("_end_ns", "logprobs", "num_tokens", "step_seconds", "tokens")

    def __init__(self, sampled: ScriptedTokens, step_seconds: float, end_ns: int) -> None:
        self.num_tokens, self.tokens, self.logprobs = sampled
        self.step_seconds = step_seconds
        self._end_ns = end_ns

    def wait(self) -> tuple[int, int]:
        """Block until the modelled end; no time if that has passed."""
        start = time.perf_counter_ns()
        if start >= self._end_ns:
            return 0, 0
        end = wait_until(self._end_ns)
        return end - start, end - self._end_ns


class ModelledDevice:
    """Steps run one after the other, each once the host has launched it and the one before has
    ended.
    """

    needs_profile = True
    has_model = False
    backend = ""
    takes_gpu = False

    def __init__(self, config: EngineConfig) -> None:
        self._profile = load_profile(config.device_profile)
        self._sampler = ScriptedSampler(config)
        self._free_at_ns = 0
        tighten_timer()

    @staticmethod
    def build(config: EngineConfig, parallel: "Parallel") -> "ModelledDevice":
        """It; what is scripted is not divided."""
        return ModelledDevice(config)

    @staticmethod
    def check(config: EngineConfig) -> None:
        """Raise ValueError where there is no such profile, or a request does not fit."""
        check_room(num_gpu_blocks(ModelledDevice.num_kv_tokens(config), config), config)

    @staticmethod
    def num_kv_tokens(config: EngineConfig) -> int:
        """What the profile's memory leaves beside the weights."""
        return load_profile(config.device_profile).num_kv_tokens()

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Nothing is kept."""
        return ReadyDevice()

    def launch(self, batch: DeviceBatch) -> _Running:
        """Take the host as long as launching does; the step starts before the launch's tail, or
        when the step before has ended.
        """
        profile, host = self._profile, self._profile.host
        step_seconds = profile.step_seconds(batch)
        now = time.perf_counter_ns()
        started = self._launch_for(host.seconds_before(*_decoding_and_prompts(batch)), now)
        self._free_at_ns = max(started, self._free_at_ns) + round(step_seconds * 1e9)
        # Sampled after the clock has started: what the host spends on it the device is busy.
        sampled = self._sampler.sample(batch)
        self._launch_for(host.tail_seconds, started)
        ended = self._free_at_ns + round(host.wake_up_seconds * 1e9)
        return _Running(sampled, step_seconds, ended)

    def _launch_for(self, seconds: float, began_ns: int) -> int:
        """Be at it so long, first with the GIL; when that is over."""
        if not seconds:
            return began_ns
        held = seconds * (1 - self._profile.host.gil_free_share)
        hold_until(began_ns + round(held * 1e9))
        end_ns = began_ns + round(seconds * 1e9)
        return max(end_ns, wait_until(end_ns))

    def stats(self) -> dict[str, float]:
        """Nothing: there is no arithmetic."""
        return {}


def _decoding_and_prompts(batch: DeviceBatch) -> tuple[int, int]:
    """Rows that a graph would replay, and tokens that would be computed beside it."""
    decodes = batch.decodes
    if decodes is None:
        decodes = (batch.position > 0) & (batch.num_scheduled == 1)
    return int(np.count_nonzero(decodes)), int(batch.num_scheduled[~decodes].sum())
