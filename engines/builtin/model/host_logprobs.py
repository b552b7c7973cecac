"""Log-probabilities of a step as the runner takes them: arrays with a row a request."""

from collections.abc import Sequence

import numpy as np

from engines.builtin.logprobs import DeviceLogprobs
from engines.builtin.model.sampler import TokenLogprobs
from engines.protocol import Int64Array


def host_logprobs(
    drawn: TokenLogprobs | None, places: Int64Array, shape: Sequence[int]
) -> DeviceLogprobs | None:
    """Arrays of ``shape`` ``[num_reqs, max_tokens]`` and one more dimension for the choices.

    ``drawn``: on the host; ``places``: see `Sampled.outputs`.
    """
    if drawn is None:
        return None
    num_reqs, width = shape
    choices = drawn.logprobs.shape[-1]
    token_ids = np.zeros((num_reqs * width + 1, choices), np.int32)
    logprobs = np.zeros((num_reqs * width + 1, choices), np.float32)
    ranks = np.zeros(num_reqs * width + 1, np.int32)
    # The place -1 of drafts not accepted is the last, which is cut off.
    token_ids[places] = drawn.token_ids.numpy()
    logprobs[places] = drawn.logprobs.numpy()
    ranks[places] = drawn.ranks.numpy()
    return DeviceLogprobs(
        token_ids[:-1].reshape(num_reqs, width, choices),
        logprobs[:-1].reshape(num_reqs, width, choices),
        ranks[:-1].reshape(num_reqs, width),
    )
