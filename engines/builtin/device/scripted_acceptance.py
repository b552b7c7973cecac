"""How many drafts a decode step accepts: drawn by (seed, request, position), whatever the model."""

import numpy as np
from numpy.typing import NDArray

from engines.builtin.device import DeviceBatch
from engines.builtin.device.split_mix import GOLDEN, mix
from engines.protocol import EngineConfig, Int32Array


class ScriptedAcceptance:
    """A row's entry of ``num_accepted``, or as many tokens as it computes if those are fewer; a
    request's numbers do not depend on its batch.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._num_accepted = np.asarray(config.num_accepted, np.int32)
        self._seed = mix(np.array([config.seed], np.uint64))

    def keys(self, batch: DeviceBatch) -> NDArray[np.uint64]:
        """uint64 ``[num_reqs]``: one for each row's request and position."""
        key = batch.request_index.astype(np.uint64)
        key *= GOLDEN
        key += self._seed
        mix(key)
        key += batch.position.astype(np.uint64)
        return key

    def num_tokens(
        self, batch: DeviceBatch, keys: NDArray[np.uint64] | None = None
    ) -> Int32Array | None:
        """Tokens that each row samples, int32 ``[num_reqs]``; None: one each.

        ``keys``: the batch's, where they have been made already; they stay.
        """
        if batch.decodes is None:
            return None if batch.samples is None else batch.samples.astype(np.int32)
        if keys is None:
            keys = self.keys(batch)
        entries = mix(keys ^ GOLDEN) % np.uint64(len(self._num_accepted))
        accepted: Int32Array = np.minimum(self._num_accepted[entries], batch.num_scheduled)
        accepted[~batch.decodes] = 1  # nothing is speculated on while the prompt runs
        if batch.samples is not None:
            accepted[~batch.samples] = 0
        return accepted
