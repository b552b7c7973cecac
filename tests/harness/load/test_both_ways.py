"""In process against HTTP: what HTTP adds is what was planted, and both ways are the same work."""

import msgspec
import numpy as np
import pytest
from small import CELL, answer, schedule, trial

from harness.cli.flags import asked
from harness.cli.serve import serve
from harness.load.both_ways import Round, both_ways
from harness.load.result import LoadResult
from harness.load.served import flags_of
from harness.load.task import Asked
from harness.trial.engine_config import engine_config
from harness.verbs.serve import ServeRequest, served_engine


def round_of(folder, here: dict[str, float], there: dict[str, float], **changes: str) -> Round:
    """A made-up round; ``changes`` are of the trial over HTTP."""
    asked = trial(schedule([4, 4]), folder)
    over_http = answer(asked, there)
    return Round(
        in_process=answer(asked, here),
        over_http=LoadResult(
            name="load",
            trial=msgspec.structs.replace(over_http, **changes),
            asked=Asked(urls=[], model=""),
            num_requests=2,
            num_attempted=2,
            num_completed=2,
            outcomes={"completed": 2},
            messages={},
            broken=[],
            clients=[],
            num_pieces=8,
            prompt_tokens=6,
            server_collections={},
            scrapes=[],
            notes=[],
        ),
        cpu_seconds={"front end": 0.8, "engine core": 0.4},
        num_tokens=8,
    )


def test_what_http_adds_is_found_with_its_interval(tmp_path):
    rng = np.random.default_rng(0)
    rounds = []
    for machine in rng.uniform(0.5, 2.0, 7):  # slow rounds are slow both ways
        here = {"ttft_mean": 0.1 * machine, "tpot_mean": 0.01, "output_throughput": 100.0}
        noise = rng.normal(0, 0.001)
        there = {
            "ttft_mean": here["ttft_mean"] + 0.02 + noise,
            "tpot_mean": 0.012,
            "output_throughput": 80.0,
        }
        rounds.append(round_of(tmp_path, here, there))
    cell = both_ways("a", {}, rounds)
    ttft = cell.metrics["ttft_mean"]
    low, high = ttft.ci95
    assert low < 0.02 < high
    assert high - low < 0.004
    assert cell.metrics["tpot_mean"].difference == pytest.approx(0.002)
    assert cell.cpu_per_token == {"front end": [0.1] * 7, "engine core": [0.05] * 7}


def test_two_rounds_have_no_interval_and_a_metric_that_is_not_there_is_left_out(tmp_path):
    cell = both_ways("a", {}, [round_of(tmp_path, {"ttft_mean": 1.0}, {"ttft_mean": 3.0})] * 2)
    assert list(cell.metrics) == ["ttft_mean"]
    assert (cell.metrics["ttft_mean"].difference, cell.metrics["ttft_mean"].ci95) == (2.0, None)
    with pytest.raises(ValueError, match="no round can be used"):
        both_ways("a", {}, [])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"invalid": "the client was late"}, "over HTTP: the client was late"),
        ({"lengths_sha256": "other"}, "the two ways gave outputs of different lengths"),
    ],
)
def test_a_round_that_must_not_be_used_says_why(tmp_path, changes, why):
    refusal = round_of(tmp_path, {}, {}, **changes).refusal
    assert refusal.startswith(why)
    assert bool(refusal) == bool(why)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"device": "null", "representation": "flat_arrays", "delivery": "vllm_v1"},
        {"batch_size": 7, "num_gpu_blocks_override": 99, "prefix_caching": "on"},
        {"worker": "process", "wire": "columns", "scheduling_policy": "priority"},
    ],
)
def test_the_server_builds_the_engine_that_the_trial_builds(changes):
    cell = msgspec.structs.replace(CELL, model="opt-125m", detokenizer="decode_stream", **changes)
    of = schedule([9, 5])
    here = engine_config(cell, of)
    flags = [*flags_of(cell), "--seed", str(of.token_seed)]
    flags += ["--axis", f"max-model-len={here.max_model_len}"]
    _, there = served_engine(asked(ServeRequest, serve.make_context("serve", flags)))
    # Its outputs are made in the front end, whatever the engine in process does.
    own = {"output_processing", "retain_outputs", "seed"}
    for field in type(here).__dataclass_fields__:
        if field not in own:
            assert getattr(here, field) == getattr(there, field), field
