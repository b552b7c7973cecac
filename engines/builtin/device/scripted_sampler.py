"""Sampled tokens without a model: a function of (seed, request, position), whatever the batch."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_acceptance import ScriptedAcceptance
from engines.builtin.device.scripted_logprobs import scripted_logprobs
from engines.builtin.device.split_mix import mix
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.protocol import EngineConfig, Int32Array

if TYPE_CHECKING:
    from engines.builtin.logprobs import DeviceLogprobs


class ScriptedTokens(NamedTuple):
    """A step's, as `engines.builtin.device.StepHandle` has them."""

    num_tokens: Int32Array | None
    tokens: Int32Array
    logprobs: "DeviceLogprobs | None"


class ScriptedSampler:
    """Fills a device's buffer, so that what follows the sampler is what is measured."""

    def __init__(self, config: EngineConfig) -> None:
        self._acceptance = ScriptedAcceptance(config)
        self._width = max(config.num_accepted)
        self._vocab_size = np.uint64(config.vocab_size)
        self._columns = np.arange(self._width, dtype=np.uint64)
        # Two steps can be under way at once, so a step must not overwrite the one before it.
        most_passes = min(config.num_scheduler_steps, config.max_model_len)
        shape = (2 * most_passes, config.max_num_seqs, self._width)
        self._buffers = np.empty(shape, np.int32)
        self._turn = 0
        self._logprobs = scripted_logprobs(config)

    def sample(self, batch: DeviceBatch) -> ScriptedTokens:
        """Draw a step's tokens."""
        self._turn = (self._turn + 1) % len(self._buffers)
        num_reqs = len(batch.request_index)
        keys = self._acceptance.keys(batch)
        num_tokens = self._acceptance.num_tokens(batch, keys)
        out = self._buffers[self._turn, :num_reqs]
        if self._width == 1:
            out[:, 0] = mix(keys) % self._vocab_size
        else:
            out[:] = mix(keys[:, None] + self._columns) % self._vocab_size
        if num_tokens is not None:
            out[self._columns >= num_tokens[:, None]] = PLACEHOLDER_TOKEN_ID
        logprobs = None if self._logprobs is None else self._logprobs.draw(batch, out)
        return ScriptedTokens(num_tokens, out, logprobs)
