"""Sampled tokens without a model: a function of (seed, request, position), whatever the batch."""

from typing import TYPE_CHECKING

import numpy as np

from engines.builtin.device import DeviceBatch
from engines.builtin.device.scripted_logprobs import scripted_logprobs
from engines.builtin.device.split_mix import GOLDEN, mix
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.protocol import EngineConfig

if TYPE_CHECKING:
    import torch

    from engines.builtin.logprobs import DeviceLogprobs


class ScriptedSampler:
    """Fills a real torch tensor, so that what follows the sampler is what is measured."""

    def __init__(self, config: EngineConfig) -> None:
        import torch

        self._num_accepted = np.asarray(config.num_accepted, np.int32)
        self._width = int(self._num_accepted.max())
        self._vocab_size = np.uint64(config.vocab_size)
        self._seed = mix(np.array([config.seed], np.uint64))
        self._columns = np.arange(self._width, dtype=np.uint64)
        # Two steps can be under way at once, so a step must not overwrite the one before it.
        shape = (2, config.max_num_seqs, self._width)
        self._tensors = torch.empty(shape, dtype=torch.int32)
        self._arrays = self._tensors.numpy()
        self._turn = 0
        self._logprobs = scripted_logprobs(config)

    def sample(self, batch: DeviceBatch) -> "tuple[torch.Tensor, DeviceLogprobs | None]":
        """Tokens int32 ``[num_reqs, max_tokens]``, -1 beyond a row's accepted count; and their
        log-probabilities where they are asked for.
        """
        self._turn ^= 1
        num_reqs = len(batch.request_index)
        key = batch.request_index.astype(np.uint64)
        key *= GOLDEN
        key += self._seed
        mix(key)
        key += batch.position.astype(np.uint64)
        out = self._arrays[self._turn, :num_reqs]
        if self._width == 1:
            out[:, 0] = mix(key) % self._vocab_size
        else:
            out[:] = mix(key[:, None] + self._columns) % self._vocab_size
            accepted = self._num_accepted[mix(key ^ GOLDEN) % np.uint64(len(self._num_accepted))]
            if batch.decodes is not None:
                accepted[~batch.decodes] = 1  # nothing is speculated on while the prompt runs
            out[self._columns >= accepted[:, None]] = PLACEHOLDER_TOKEN_ID
        if batch.samples is not None:
            out[~batch.samples] = PLACEHOLDER_TOKEN_ID
        logprobs = None if self._logprobs is None else self._logprobs.draw(batch, out)
        return self._tensors[self._turn, :num_reqs], logprobs
