"""Passes before the first request: the greatest, for memory, and one for each kernel's variant."""

from collections.abc import Iterator

import numpy as np

from engines.builtin.model.pass_inputs import Array, PassInputs, Sampled
from engines.protocol import EngineConfig, Int64Array


def warm_up_passes(config: EngineConfig, row: int) -> Iterator[PassInputs[Array]]:
    """No later pass takes more memory, or a variant of a kernel that none of these has.

    The greatest: every request with its share of the token budget and as many samples as it can
    have, and one request with all of it. Then those that nearly all decode, so that a prompt's
    tile holds little more than a query, and decoding alone: keys are cut into the more splits the
    fewer rows there are, and between two of these numbers one of theirs is taken.
    """
    most, budget = config.max_num_seqs, config.max_num_batched_tokens
    num_reqs = min(most, budget)
    for count in (num_reqs, 1):
        share = min(budget // count, config.max_model_len)
        yield unwritten_pass(np.full(count, share), config, row)
    lengths = np.ones(num_reqs, np.int64)
    lengths[0] = min(2, config.max_model_len)
    yield unwritten_pass(lengths, config, row)
    for count in (*(1 << power for power in range((num_reqs - 1).bit_length())), num_reqs):
        yield unwritten_pass(np.ones(count, np.int64), config, row)


def unwritten_pass(
    lengths: Int64Array, config: EngineConfig, row: int, num_before: int = 0
) -> PassInputs[Array]:
    """A pass over ``lengths`` int64 ``[num_reqs]`` tokens, behind ``num_before`` of each request,
    with as many samples as a request can have; written nowhere and read from ``row`` of the block
    table, whatever stands there.
    """
    num_reqs, num_tokens = len(lengths), int(lengths.sum())
    num_sampled = num_reqs * max(config.num_accepted)
    query_start = np.zeros(num_reqs + 1, np.int32)
    np.cumsum(lengths, out=query_start[1:])
    nowhere = np.empty(0, np.int64)
    sampled = np.arange(num_sampled) % num_tokens
    longest = int(lengths.max())
    return PassInputs(
        positions=num_before + np.arange(num_tokens) - np.repeat(query_start[:-1], lengths),
        slot_mapping=np.full(num_tokens, -1, np.int64),
        rows=np.full(num_reqs, row, np.int32),
        seq_lens=(num_before + lengths).astype(np.int32),
        query_start=query_start,
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
        max_query_len=longest,
        max_seq_len=num_before + longest,
    )
