import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workloads.prefixes import seen_before
from workloads.schedule import Schedule


def schedule(prompts):
    return Schedule(
        name="shared",
        prompt_lens=[sum(length for _, length in each) for each in prompts],
        output_lens=[1] * len(prompts),
        arrival_seconds=[0.0] * len(prompts),
        max_concurrency=0,
        num_accepted=[1],
        token_seed=3,
        stop_token_ids=(),
        retain="step",
        segment_counts=[len(each) for each in prompts],
        segment_streams=[stream for each in prompts for stream, _ in each],
        segment_lens=[length for each in prompts for _, length in each],
    )


def by_tokens(made, block_size):
    """A cache of block hashes over the real tokens, as engines have it."""
    cache, found = set(), []
    for i in range(made.num_requests):
        tokens = made.prompt_token_ids(i, 2**30)
        blocks = [tokens[:end].tobytes() for end in range(block_size, len(tokens) + 1, block_size)]
        hits = next((n for n, block in enumerate(blocks) if block not in cache), len(blocks))
        found.append(hits * block_size)
        cache |= set(blocks)
    return found


@given(
    prompts=st.lists(
        st.lists(
            st.tuples(st.integers(2**32, 2**32 + 2), st.sampled_from([3, 8, 16, 20, 33])),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=10,
    ),
    block_size=st.sampled_from([1, 8, 16]),
)
def test_it_finds_what_a_cache_of_blocks_would(prompts, block_size):
    made = schedule(prompts)
    found = seen_before(made, block_size)
    assert found.dtype == np.int64
    assert found.tolist() == by_tokens(made, block_size)


def test_prompts_of_their_own_share_nothing():
    made = schedule([[(i, 40)] for i in range(5)])
    assert seen_before(made).tolist() == [0] * 5
