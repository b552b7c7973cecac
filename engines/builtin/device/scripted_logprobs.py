"""Log-probabilities without a model: a function of (seed, request, position), as the tokens are."""

import numpy as np

from engines.builtin.device import DeviceBatch
from engines.builtin.device.split_mix import GOLDEN, mix
from engines.builtin.logprobs import DeviceLogprobs, parse_logprobs
from engines.protocol import EngineConfig, Int32Array

_OTHER_THAN_TOKENS = np.uint64(0xD1B54A32D192ED03)


class ScriptedLogprobs:
    """Drawn at launch, after the tokens."""

    def __init__(self, config: EngineConfig, num_logprobs: int) -> None:
        self._vocab_size = np.uint64(config.vocab_size)
        self._seed = mix(np.array([config.seed], np.uint64)) ^ _OTHER_THAN_TOKENS
        self._columns = np.arange(max(config.num_accepted), dtype=np.uint64)
        self._places = np.arange(num_logprobs + 1, dtype=np.uint64)

    def draw(self, batch: DeviceBatch, tokens: Int32Array) -> DeviceLogprobs:
        """For the step's ``tokens`` int32 ``[num_reqs, max_tokens]``.

        They fall from place to place, as those of the most probable tokens do.
        """
        key = batch.request_index.astype(np.uint64)
        key *= GOLDEN
        key += self._seed
        mix(key)
        key += batch.position.astype(np.uint64)
        each = mix(key[:, None] + self._columns)
        drawn = mix(each[:, :, None] + GOLDEN * self._places)
        token_ids = (drawn % self._vocab_size).astype(np.int32)
        token_ids[:, :, 0] = tokens
        fractions = (drawn >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        logprobs = (fractions + self._places.astype(np.float32)) * np.float32(-0.5)
        ranks = (each % self._vocab_size).astype(np.int32) + np.int32(1)
        return DeviceLogprobs(token_ids, logprobs, ranks)


def scripted_logprobs(config: EngineConfig) -> ScriptedLogprobs | None:
    """What draws them, None where none are asked for."""
    shape, num_logprobs = parse_logprobs(config.logprobs)
    return None if shape == "none" else ScriptedLogprobs(config, num_logprobs)
