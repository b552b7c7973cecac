import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads import catalog
from workloads.recipe.arrivals import Constant, Gamma, Ramp
from workloads.summary import Summary, length_bins, summarise_workload


def summary(name, seed=0, **changes):
    workload = msgspec.structs.replace(catalog.load_workload(name), **changes)
    return summarise_workload(workload, workload.realise(seed), seed)


@pytest.mark.parametrize("name", catalog.workload_names())
def test_every_workload_of_the_catalogue_arrives_as_it_says(name):
    made = summary(name)
    assert made.arrivals.deviations == []
    asked = made.arrivals.asked_gap_cv
    assert made.arrivals.verdict == ("nothing asked for" if asked is None else "as asked")
    assert made.num_requests == sum(made.prompt_tokens.bins.counts)
    assert made.num_requests == sum(made.arrivals.bins.counts)


@pytest.mark.parametrize("arrivals", [Constant(50), Gamma(50, 0.5), Gamma(50, 3), Ramp(1, 90, 20)])
@pytest.mark.parametrize("name", ["chat", "multi-turn"])
def test_other_arrivals_pass_too(name, arrivals):
    assert summary(name, 3, arrivals=arrivals).arrivals.verdict == "as asked"


def test_few_are_not_judged():
    assert summary("chat", num_requests=50).arrivals.verdict.startswith("too few to judge: 49 gaps")


def test_figures_are_those_of_the_schedule():
    workload = catalog.load_workload("multi-turn")
    schedule = workload.realise(1)
    made = summarise_workload(workload, schedule, 1)
    lens = np.sort(schedule.prompt_lens)
    assert made.prompt_tokens.p50 == lens[511]
    assert made.prompt_tokens.p99 == lens[int(np.ceil(0.99 * 1024)) - 1]
    assert made.prompt_tokens.total == lens.sum()
    assert made.num_conversations == (schedule.previous_turn < 0).sum()
    assert 1 < made.num_requests / made.num_conversations < made.most_turns <= 8
    assert 0.3 < made.seen_before_share < 0.8
    assert summary("chat").seen_before_share == 0
    assert summary("speculative").mean_tokens_per_step == pytest.approx(2.941, abs=0.001)


def test_the_shared_prefix_is_what_is_shared():
    made = summary("shared-prefix")
    again = (1024 - 8) * 512
    assert made.seen_before_share == pytest.approx(again / made.prompt_tokens.total)


@given(lens=st.lists(st.integers(1, 2**24), min_size=1, max_size=50), most_bins=st.integers(1, 60))
def test_bins_hold_every_length_once(lens, most_bins):
    bins = length_bins(lens, most_bins)
    assert sum(bins.counts) == len(lens)
    assert 1 <= len(bins.counts) <= max(most_bins, 1)
    assert bins.edges == sorted(set(bins.edges))
    for count, low, high in zip(bins.counts, bins.edges, bins.edges[1:], strict=False):
        assert count == sum(low <= length < high for length in lens)


@pytest.mark.parametrize("name", catalog.workload_names())
def test_it_comes_back_from_json(name):
    made = summary(name, num_requests=200)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Summary) == made
