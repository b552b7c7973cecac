import subprocess
import sys

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.recipe.acceptance import FixedAcceptance, UniformAcceptance
from workloads.recipe.arrivals import AllAtOnce, ClosedLoop, Constant, Gamma, Poisson, Ramp
from workloads.recipe.conversations import SharedPrefix, Turns
from workloads.recipe.lengths import Fixed, Lognormal, Uniform, Zipf
from workloads.recipe.observed_lengths import Bin, Empirical, LengthHistogram
from workloads.recipe.priorities import Priorities, parse_priorities
from workloads.recipe.speculative import Decaying, Geometric, MinVariance
from workloads.traces import TraceError
from workloads.traces.trace import Trace
from workloads.workload import Workload

BASE = Workload(
    name="base",
    num_requests=40,
    prompt_lens=Uniform(10, 100),
    output_lens=Lognormal(50, 1.0),
    arrivals=Poisson(5),
    acceptance=UniformAcceptance(1, 4),
)
ARRAYS = ("prompt_lens", "output_lens", "arrival_seconds", "num_accepted")

lengths = st.one_of(
    st.integers(1, 500).map(Fixed),
    st.tuples(st.integers(1, 50), st.integers(50, 500)).map(lambda ends: Uniform(*ends)),
    st.tuples(st.floats(1, 500), st.floats(0.1, 2)).map(lambda shape: Lognormal(*shape)),
    st.just(Zipf(1.1, 4, 900)),
    st.just(Empirical((3, 9, 27))),
    st.just(LengthHistogram((Bin(1, 9, 0.5), Bin(50, 90, 0.5)))),
)
arrivals = st.one_of(
    st.sampled_from([AllAtOnce(), Constant(5), Gamma(5, 0.5), Ramp(1, 9, 5)]),
    st.integers(1, 99).map(ClosedLoop),
    st.floats(0.1, 100).map(Poisson),
)
acceptances = st.one_of(
    st.integers(1, 8).map(FixedAcceptance),
    st.integers(1, 8).map(lambda high: UniformAcceptance(1, high)),
    st.sampled_from([MinVariance(2.5, 4), Geometric(0.7, 6), Decaying(0.7, 0.9, 6)]),
)
CHANGES = st.one_of(
    st.tuples(st.just("prompt_lens"), lengths, st.just("prompt_lens")),
    st.tuples(st.just("output_lens"), lengths, st.just("output_lens")),
    st.tuples(st.just("arrivals"), arrivals, st.just("arrival_seconds")),
    st.tuples(st.just("acceptance"), acceptances, st.just("num_accepted")),
)


@given(seed=st.integers(0, 2**64), change=CHANGES)
def test_changing_one_generator_leaves_the_others_as_they_were(seed, change):
    field, value, array = change
    before = BASE.realise(seed)
    after = msgspec.structs.replace(BASE, **{field: value}).realise(seed)
    for name in ARRAYS:
        if name != array:
            assert getattr(after, name).tolist() == getattr(before, name).tolist()
    assert after.token_seed == before.token_seed


@given(seed=st.integers(0, 2**64))
def test_the_same_seed_gives_the_same_schedule_and_another_another(seed):
    assert BASE.realise(seed).sha256 == BASE.realise(seed).sha256
    assert BASE.realise(seed).sha256 != BASE.realise(seed + 1).sha256


def test_streams_are_not_one_stream_used_twice():
    both = msgspec.structs.replace(BASE, output_lens=BASE.prompt_lens).realise(0)
    assert both.prompt_lens.tolist() != both.output_lens.tolist()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_realises_the_same(hash_seed):
    code = (
        "import sys, msgspec; from workloads.workload import Workload; "
        "print(msgspec.json.decode(sys.argv[1], type=Workload).realise(7).sha256)"
    )
    workload = msgspec.json.encode(BASE).decode()
    found = subprocess.run(
        [sys.executable, "-c", code, workload],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == BASE.realise(7).sha256


def test_everything_reaches_the_schedule():
    workload = msgspec.structs.replace(
        BASE, arrivals=ClosedLoop(3), retain="finish", stop_token_ids=(2, 9)
    )
    made = workload.realise(1)
    assert (made.name, made.num_requests, made.max_concurrency) == ("base", 40, 3)
    assert (made.retain, made.stop_token_ids) == ("finish", (2, 9))
    assert BASE.realise(1).max_concurrency == 0


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    rows = [f"2023-11-16 18:15:{second:02},{10 + second},{20 + second}" for second in range(30)]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows, "spoilt"]))
    return Trace(str(path), start_seconds=5, skip_bad_rows=True)


def test_a_trace_gives_lengths_and_times(trace):
    made = Workload(name="recorded", trace=trace).realise(0)
    assert made.prompt_lens.tolist() == list(range(15, 40))
    assert made.output_lens.tolist() == list(range(25, 50))
    assert made.arrival_seconds.tolist() == list(range(25))
    assert (made.bad_rows, made.max_concurrency) == (1, 0)


def test_what_is_given_beside_a_trace_stands_in_its_place(trace):
    made = Workload(
        name="recorded", trace=trace, num_requests=4, output_lens=Fixed(3), arrivals=ClosedLoop(2)
    ).realise(0)
    assert made.prompt_lens.tolist() == [15, 16, 17, 18]
    assert made.output_lens.tolist() == [3, 3, 3, 3]
    assert made.arrival_seconds.tolist() == [0, 0, 0, 0]
    assert made.max_concurrency == 2


def test_more_requests_than_the_window_has_are_refused(trace):
    with pytest.raises(TraceError, match="window has 25 requests, 26 were asked for"):
        Workload(name="recorded", trace=trace, num_requests=26).realise(0)


def test_without_a_trace_the_lengths_are_needed():
    with pytest.raises(ValueError, match="num_requests and output_lens must be given, or a trace"):
        Workload(name="half", prompt_lens=Fixed(3))


@pytest.mark.parametrize(
    "changes", [{"num_requests": 0}, {"num_requests": 10**9}, {"stop_token_ids": (-1,)}]
)
def test_values_out_of_range_are_refused(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        msgspec.structs.replace(BASE, **changes)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed -1 must be 0 or more"):
        BASE.realise(-1)


def test_without_arrivals_all_come_at_once():
    made = msgspec.structs.replace(BASE, arrivals=None).realise(0)
    assert not np.any(made.arrival_seconds)


def test_priorities_are_even_between_their_ends_and_leave_the_rest_as_it_was():
    workload = msgspec.structs.replace(BASE, num_requests=4000, priorities=Priorities(-1, 2))
    made = workload.realise(0)
    counts = np.bincount(made.priorities + 1)
    assert len(counts) == 4
    assert np.abs(counts / 1000 - 1).max() < 0.1
    plain = msgspec.structs.replace(workload, priorities=None).realise(0)
    for name in ARRAYS:
        assert getattr(made, name).tolist() == getattr(plain, name).tolist()
    assert len(plain.priorities) == 0


@pytest.mark.parametrize(
    ("text", "expected"), [("0:3", Priorities(0, 3)), (" -5:-2 ", Priorities(-5, -2))]
)
def test_priorities_parse(text, expected):
    assert parse_priorities(text) == expected


@pytest.mark.parametrize("text", ["", "3", "0:x", "0:1:2", "3:1", "0:99999999999", "0:3000000000"])
def test_priorities_that_cannot_be_are_refused(text):
    with pytest.raises(ValueError, match="priorities"):
        parse_priorities(text)


def test_what_stops_a_request_reaches_the_schedule():
    made = msgspec.structs.replace(
        BASE, stop=("end", "\n"), min_tokens=3, ignore_eos=False
    ).realise(0)
    assert (made.stop, made.min_tokens, made.ignore_eos) == (("end", "\n"), 3, False)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"stop": ("",)}, "at least one character"), ({"min_tokens": -1}, "min_tokens -1")],
)
def test_what_can_stop_no_request_is_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        msgspec.structs.replace(BASE, **changes)


def test_turns_and_a_trace_do_not_go_together(trace):
    with pytest.raises(ValueError, match="turns make conversations, and a trace has its own"):
        Workload(name="both", trace=trace, turns=Turns(3))


def test_a_shared_prefix_comes_before_a_traces_prompts(trace):
    prefix = SharedPrefix(2, 100)
    made = Workload(name="both", trace=trace, shared_prefix=prefix).realise(0)
    assert made.prompt_lens.tolist() == [length + 100 for length in range(15, 40)]
    assert {made.prompt_segments(i)[0][1] for i in range(25)} == {100}
