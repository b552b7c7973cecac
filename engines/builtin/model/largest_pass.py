"""The greatest step that can come: what memory it takes is not there for the KV cache."""

import numpy as np

from engines.builtin.model.pass_inputs import Array, PassInputs, Sampled
from engines.protocol import EngineConfig


def largest_pass(config: EngineConfig, row: int) -> PassInputs[Array]:
    """Every request with its share of the token budget and as many samples as it can have.

    Written nowhere and read from ``row`` of the block table, whatever stands there.
    """
    num_reqs = min(config.max_num_seqs, config.max_num_batched_tokens)
    share = min(config.max_num_batched_tokens // num_reqs, config.max_model_len)
    num_tokens, num_sampled = num_reqs * share, num_reqs * max(config.num_accepted)
    nowhere = np.empty(0, np.int64)
    sampled = np.arange(num_sampled) % num_tokens
    return PassInputs(
        positions=np.tile(np.arange(share), num_reqs),
        slot_mapping=np.full(num_tokens, -1, np.int64),
        rows=np.full(num_reqs, row, np.int32),
        seq_lens=np.full(num_reqs, share, np.int32),
        query_start=np.arange(num_reqs + 1, dtype=np.int32) * share,
        token_ids=np.zeros(num_tokens, np.int64),
        last_places=nowhere,
        last_rows=nowhere,
        sampled=Sampled(
            places=sampled,
            requests=sampled,
            positions=sampled,
            outputs=np.arange(num_sampled),
            kept=np.arange(num_reqs),
            kept_rows=np.full(num_reqs, row, np.int64),
            own=nowhere,
        ),
        max_query_len=share,
        max_seq_len=share,
    )
