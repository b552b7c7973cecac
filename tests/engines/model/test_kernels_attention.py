"""Paged attention in Triton equals naive attention in float64, under Triton's interpreter."""

import pytest
import torch
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from kernel_oracles import Case, Shape, assert_close, attention_case, attention_oracle

pytestmark = pytest.mark.slow

WARPS_AND_STAGES = 4, 2
SMALL = Shape(num_kv_heads=2, group=2, head_dim=16, block_size=4)

shapes = st.builds(
    Shape,
    num_kv_heads=st.integers(1, 2),
    group=st.sampled_from([1, 2, 3, 4, 8]),
    head_dim=st.sampled_from([8, 16, 64, 80, 128]),
    block_size=st.sampled_from([1, 4, 16, 32]),
)
dtypes = st.sampled_from([torch.float32, torch.bfloat16, torch.float16])
seeds = st.integers(0, 999)


@st.composite
def decodes(draw) -> Case:
    seq_lens = draw(st.lists(st.integers(1, 70), min_size=1, max_size=4))
    query_lens = [1] * len(seq_lens)
    return attention_case(draw(shapes), query_lens, seq_lens, dtype=draw(dtypes), seed=draw(seeds))


@st.composite
def chunks(draw) -> Case:
    """Requests with one query or many, which are all of their tokens or the last."""
    query_lens = draw(st.lists(st.sampled_from([1, 1, 2, 5, 16, 17, 40]), min_size=1, max_size=4))
    seq_lens = [length + draw(st.integers(0, 30)) for length in query_lens]
    return attention_case(draw(shapes), query_lens, seq_lens, dtype=draw(dtypes), seed=draw(seeds))


def as_often(full: int):
    """The interpreter needs up to a second for an example."""
    return examples(full, [HealthCheck.too_slow])


def check_decode(interpreted, case: Case, num_splits: int | None, num_keys: int) -> None:
    tile = num_keys, *WARPS_AND_STAGES
    out = interpreted("paged_decode:paged_decode", *case, num_splits, tile)
    assert out.dtype == case.q.dtype
    assert_close(out, attention_oracle(*case))


def check_prefill(interpreted, case: Case, num_rows: int, num_keys: int) -> None:
    tile = num_rows, num_keys, *WARPS_AND_STAGES
    out = interpreted("paged_prefill:paged_prefill", *case, tile)
    assert out.dtype == case.q.dtype
    assert_close(out, attention_oracle(*case))


forced_splits = st.sampled_from([None, 1, 2, 4, 8])


@given(case=decodes(), num_splits=forced_splits, num_keys=st.sampled_from([16, 32]))
@as_often(15)
def test_decoding_over_ragged_contexts(interpreted, case, num_splits, num_keys):
    check_decode(interpreted, case, num_splits, num_keys)


@pytest.mark.slow
@given(case=decodes(), num_splits=forced_splits, num_keys=st.sampled_from([16, 32]))
@as_often(150)
def test_decoding_over_many_ragged_contexts(interpreted, case, num_splits, num_keys):
    check_decode(interpreted, case, num_splits, num_keys)


@given(case=chunks(), num_rows=st.sampled_from([16, 32]), num_keys=st.sampled_from([16, 32]))
@as_often(15)
def test_chunks_and_single_queries_in_one_batch(interpreted, case, num_rows, num_keys):
    check_prefill(interpreted, case, num_rows, num_keys)


@pytest.mark.slow
@given(case=chunks(), num_rows=st.sampled_from([16, 32]), num_keys=st.sampled_from([16, 32]))
@as_often(150)
def test_many_chunks_and_single_queries_in_one_batch(interpreted, case, num_rows, num_keys):
    check_prefill(interpreted, case, num_rows, num_keys)


@pytest.mark.parametrize("query_lens", [[1, 1, 1], [1, 9, 1]])
def test_the_ops_choose_kernel_tile_and_splits_by_themselves(interpreted, query_lens):
    case = attention_case(SMALL, query_lens, [70, 9, 1], dtype=torch.float16)
    assert_close(interpreted(":TritonOps.attention", *case), attention_oracle(*case))


@pytest.mark.parametrize("num_splits", [1, 4])
def test_a_request_without_keys_gets_zeros(interpreted, num_splits):
    case = attention_case(SMALL, [1, 1, 1], [20, 3, 7])
    case.batch.seq_lens[1] = 0
    out = interpreted("paged_decode:paged_decode", *case, num_splits)
    assert (out[1] == 0).all()
    assert_close(out, attention_oracle(*case))
    assert_close(interpreted("paged_prefill:paged_prefill", *case), attention_oracle(*case))


def test_requests_of_a_padded_batch_may_share_a_block(interpreted):
    case = attention_case(SMALL, [1, 1, 1, 1], [20, 1, 1, 1])
    case.batch.rows[2:] = case.batch.rows[1]
    out = interpreted("paged_decode:paged_decode", *case)
    assert_close(out, attention_oracle(*case))


def test_scores_far_apart_do_not_overflow(interpreted):
    case = attention_case(SMALL, [1, 1], [70, 33])
    case.q.mul_(1e4)
    for num_splits in (1, 4):
        out = interpreted("paged_decode:paged_decode", *case, num_splits, (16, 4, 2))
        assert_close(out, attention_oracle(*case))


def test_one_more_query_head_than_a_product_has_rows(interpreted):
    case = attention_case(SMALL._replace(group=17), [1, 3], [40, 20])
    check_prefill(interpreted, case, 32, 16)
    case = attention_case(SMALL._replace(group=17), [1, 1], [40, 20])
    check_decode(interpreted, case, 2, 16)


@given(
    num_programs=st.integers(1, 20_000), max_tiles=st.integers(0, 500), num_sms=st.integers(1, 200)
)
@as_often(50)
def test_splits_fill_the_multiprocessors_and_no_more(interpreted, num_programs, max_tiles, num_sms):
    splits = interpreted("paged_decode:choose_num_splits", num_programs, max_tiles, num_sms)
    assert splits.bit_count() == 1
    assert splits <= max(1, max_tiles)
    if splits > 1:
        assert num_programs * splits // 2 < 4 * num_sms, "half as many would have done"
    elif max_tiles >= 2:
        assert num_programs >= 4 * num_sms, "one would not have done"


def test_a_large_batch_is_not_split_and_a_single_request_is(interpreted):
    splits = [
        interpreted("paged_decode:choose_num_splits", requests * 12, 16, 132)
        for requests in (1024, 32, 1)
    ]
    assert splits == [1, 2, 16]
