"""vLLM's AsyncLLM with its detokenizer, held against the built-in engine on the same schedule."""

import pytest
from vllm_trials import cell, run, schedule, trial

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]

CORE = {"schedule", "update_from_output", "serialise", "transport", "step"}
FRONT_END = {"deserialise", "process_outputs", "deliver", "transport", "event loop", "add"}


def test_it_answers_as_the_built_in_engine_and_tells_its_stages_apart(tmp_path):
    ragged = schedule([1 + i * 7 % 20 for i in range(40)], [8 + i for i in range(40)])
    text = {"detokenizer": "decode_stream"}
    builtin = cell("builtin", **text)
    front_end = cell("vllm-hostpath", front_end="async", setup="shipped", **text)
    expected, timed, traced = run([
        trial(ragged, tmp_path, builtin),
        trial(ragged, tmp_path, front_end, "stages"),
        trial(ragged, tmp_path, front_end, "stage_bytecodes"),
    ])  # fmt: skip
    for result in (timed, traced):
        for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
            assert getattr(result, name) == getattr(expected, name), name
        assert [each.role for each in result.processes] == ["frontend", "engine"]
        state = result.engine_state
        assert (state["front_end"], state["detokenizer"]) == ("async", "decode_stream")
        assert result.stages is not None
        assert result.stages.num_rows == sum(1 + i * 7 % 20 for i in range(40))
        costs = result.stages.per_row()
        assert {stage for role, stage in costs if role == "engine"} >= CORE
        assert {stage for role, stage in costs if role == "frontend"} >= FRONT_END
        assert min(costs.values()) > 0
    assert timed.text_sha256 == traced.text_sha256 != ""
    costs = timed.stages.per_row()
    for role in ("frontend", "engine"):
        stages = [amount for (of, stage), amount in costs.items() if of == role and stage != "all"]
        assert sum(stages) < costs[role, "all"]
