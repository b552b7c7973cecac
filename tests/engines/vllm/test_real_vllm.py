"""Real vLLM on a CPU, with a small model whose weights are made up."""

import pytest
from examples import every
from vllm_trials import TIMEOUT_SECONDS, cell, run, schedule, trial

from harness.cli.main import main
from harness.experiment.local_executor import LocalExecutor
from harness.trial.spec import TrialFailure

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]

CELLS = [
    {"gc": "threshold:5000/20/30"},
    {"gc": "freeze", "engine_core": "process", "worker": "process"},
    {"gc": "freeze", "engine_core": "process"},
    {"gc": "disabled", "worker": "process"},
]
ROLES = [["engine"], ["frontend", "engine", "worker"], ["frontend", "engine"], ["engine", "worker"]]


def test_lengths_and_reasons_are_the_built_in_engines_and_policies_hold(tmp_path):
    even = schedule([1 + i % 8 for i in range(16)], [48] * 16)
    chosen = CELLS[: max(2, len(CELLS) // every())]
    asked = [cell("vllm", model="opt-tiny", device="cpu", **axes) for axes in chosen]
    builtin, *results = run([trial(even, tmp_path, each) for each in (cell("builtin"), *asked)])
    for axes, roles, result in zip(chosen, ROLES[: len(chosen)], results, strict=True):
        assert result.lengths_sha256 == builtin.lengths_sha256, axes
        assert result.finish_sha256 == builtin.finish_sha256, axes
        assert not result.script
        assert [process.role for process in result.processes] == roles
        for name in ("worker", "engine_core"):
            assert result.engine_state[name] == axes.get(name, "in-process")
        for process in result.processes:
            state = process.state
            assert state.enabled == (axes["gc"] != "disabled")
            assert (state.thresholds == (5000, 20, 30)) == axes["gc"].startswith("threshold")
            assert (state.freeze_count > state.tracked_objects / 2) == (axes["gc"] == "freeze")
    # Greedy sampling of the same weights: scheduling and collector change no token.
    assert len({result.tokens_sha256 for result in results}) == 1


@pytest.mark.parametrize("engine_core", ["in-process", "process"][:: every()])
def test_a_switch_that_vllm_overrides_is_refused(engine_core, tmp_path):
    """Its CPU platform has no async scheduling, and says so only in its own code."""
    asked = cell(
        "vllm",
        model="opt-tiny",
        device="cpu",
        output_processing="overlapped",
        engine_core=engine_core,
    )
    alone = trial(schedule([4] * 4, [8] * 4), tmp_path, asked)
    (outcome,) = LocalExecutor(TIMEOUT_SECONDS).run([alone])
    assert isinstance(outcome, TrialFailure)
    assert outcome.kind == "refused"
    assert "does not run as asked: output_processing is inline, not overlapped" in outcome.reason


def test_a_context_that_is_longer_than_the_models_is_refused_in_a_sentence(tmp_path, capsys):
    status = main(
        [
            "run",
            "--engine",
            "vllm",
            "--device",
            "cpu",
            "--axis",
            "model=opt-tiny",
            "--batch-size",
            "8",
            "--num-requests",
            "8",
            "--output-lens",
            "3000",
            "--output",
            str(tmp_path / "runs"),
        ]
    )
    said = capsys.readouterr()
    assert status == 3
    assert "vLLM refuses: " in said.err
    assert "max_model_len (3048)" in said.err.replace("\n", " ")
    assert "Traceback" not in said.err
