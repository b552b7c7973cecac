"""All of vLLM but the forward pass, held against the built-in engine on the same schedule."""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from examples import every, some
from vllm_trials import TIMEOUT_SECONDS, cell, outputs, run, schedule, trial

from engines.protocol import NOT_AS_DEPLOYED, FinishReason
from engines.vllm.releases import VLLM
from harness.axes import Cell
from harness.collector.policy import DEFAULT_THRESHOLDS
from harness.collector.result import ProcessResult
from harness.experiment.grid import traits
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.trial_process import TrialInterpreter, TrialProcess
from harness.metrics import METRICS
from harness.tracking.gate.plan import EXACT_MODES
from harness.trial.message_parts import PARTS
from harness.trial.spec import TrialBatch, TrialFailure, TrialResult

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]

PROMPT_LENS = [700 + i * 37 % 400 for i in range(40)]
"""A batch of 12 has more prompt tokens than the 8,192 of a step, so some come in chunks."""

BOTH = {"worker": "process", "engine_core": "process"}

# Each two values of worker, engine core and output processing meet, each shape crosses once, and
# prefix caching, which leaves the tokens as they are, is on in one. What CI leaves out other tests
# have, which compare tokens too.
CELLS: list[dict[str, Any]] = [
    {"gc": "default", "prefix_caching": "on"},
    {
        "gc": "freeze",
        "engine_core": "process",
        "output_processing": "overlapped",
        "representation": "list_of_arrays",
    },
    {
        "gc": "threshold:5000/20/30",
        "worker": "process",
        "output_processing": "overlapped",
        "representation": "flat_arrays",
    },
    {"gc": "disabled", "representation": "padded_arrays"} | BOTH,
    {"gc": "as_is", "output_processing": "overlapped", "representation": "int_or_list"},
]


def roles(axes: dict[str, Any]) -> list[str]:
    there = ["frontend"] if axes.get("engine_core") == "process" else []
    return [*there, "engine", *(["worker"] if axes.get("worker") == "process" else [])]


@pytest.mark.landing
def test_tokens_lengths_and_reasons_are_the_built_in_engines_and_policies_hold(tmp_path):
    plain = schedule([1 + i * 7 % 20 for i in range(40)], PROMPT_LENS)
    tokens = outputs(plain)
    stops = tuple(sorted({tokens[i][0][len(tokens[i][0]) // 2] for i in (3, 5, 8, 13, 21)}))
    ragged = replace(plain, stop_token_ids=stops)
    wanted = outputs(ragged)
    assert {reason for _, reason in wanted} == {FinishReason.STOP, FinishReason.LENGTH}
    assert len({len(each) for each, _ in wanted}) > 10, "ragged"

    chosen = CELLS[:: every()]
    asked = [cell("vllm-hostpath", **axes) for axes in chosen]
    results = run([trial(ragged, tmp_path, each) for each in (cell("builtin"), *asked)])
    for axes, result in zip(chosen, results[1:], strict=True):
        for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
            assert getattr(result, name) == getattr(results[0], name), (name, axes)
        assert result.script
        assert [each.role for each in result.processes] == roles(axes)
        check_engine(result, axes)
        for process in result.processes:
            check_state(process, axes["gc"])


SCHEDULERS = {"inline": "scheduler.Scheduler", "overlapped": "async_scheduler.AsyncScheduler"}


def check_engine(result: TrialResult, axes: dict[str, Any]) -> None:
    """The switches as vLLM's own processes say that they are in force."""
    state = result.engine_state
    wanted = {"output_processing": "inline", "worker": "in-process", "engine_core": "in-process"}
    for name, default in wanted.items():
        assert state[name] == axes.get(name, default)
    assert state["scheduler"].endswith(SCHEDULERS[state["output_processing"]])
    assert state["enable_prefix_caching"] == (axes.get("prefix_caching") == "on")
    assert state["enable_chunked_prefill"]
    assert (state["detokenizer"], state["max_num_seqs"]) == ("none", 12)


SETUPS = ("lean", "shipped", "served")
STEPS = 40
EVEN = schedule([STEPS] * 16, [20] * 16)


def even_cell(**axes: Any) -> Cell:
    return cell("vllm-hostpath", **{"gc": "freeze", "batch_size": 16} | axes)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, pinned_vllm: str) -> TrialResult:
    """A trial of its own that counts bytecodes."""
    (result,) = run([trial(EVEN, tmp_path_factory.mktemp("plain"), even_cell(), "opcodes")])
    return result


def test_overlapped_schedules_a_step_ahead_and_does_more_per_step(tmp_path, plain):
    asked = even_cell(output_processing="overlapped")
    (result,) = run([trial(EVEN, tmp_path, asked, "opcodes")])
    inline, overlapped = plain.metrics, result.metrics
    assert (inline["num_steps"], overlapped["num_steps"]) == (STEPS, STEPS + 1), (
        "the first brings nothing"
    )
    assert overlapped["bytecodes_per_request_step"] > 1.03 * inline["bytecodes_per_request_step"]
    for name in ("tokens_sha256", "finish_sha256"):
        assert getattr(result, name) == getattr(plain, name)


def test_as_shipped_the_release_has_its_own_defaults_in_force(tmp_path, plain):
    """Requests end before an idle time and leave room for others: a step of nobody names them."""
    waves = schedule([4] * 60, [8] * 60, arrival_seconds=np.repeat(np.arange(5) * 0.2, 12))
    asked = [cell("builtin"), cell("vllm-hostpath", setup="shipped")]
    builtin, shipped = run([trial(waves, tmp_path, each, "timing") for each in asked])
    assert shipped.tokens_sha256 == builtin.tokens_sha256
    switches = ("output_processing", "enable_prefix_caching", "log_stats", "model_runner")
    assert [plain.engine_state[name] for name in switches] == ["inline", False, False, "V2"]
    assert [shipped.engine_state[name] for name in switches] == ["overlapped", True, True, "V2"]


@pytest.mark.parametrize(("setup", "least"), [("shipped", 1.15), ("served", 1.6)])
def test_as_production_has_it_it_counts_to_the_digit(tmp_path, plain, setup, least):
    """Alone and beside another, which makes steps longer: neither thread nor clock decides."""
    asked = even_cell(setup=setup)
    assert traits(asked).is_exact
    (alone,) = run([trial(EVEN, tmp_path, asked, "opcodes")])
    beside = run([trial(EVEN, tmp_path, asked, "opcodes") for _ in range(2)])
    assert [exact_figures(each) for each in beside] == [exact_figures(alone)] * 2
    name = "bytecodes_per_request_step"
    assert alone.metrics[name] > least * plain.metrics[name]


def test_a_runner_that_no_cuda_deployment_takes_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "0")
    (result,) = run([trial(EVEN, tmp_path, even_cell(), "opcodes")])
    assert result.engine_state["model_runner"] == "V1"
    assert "on CUDA this release takes V2" in result.engine_state[NOT_AS_DEPLOYED]


def test_preempted_requests_come_back_as_the_runner_is_told_of_them(tmp_path):
    """Model runner V2 hears of them as of new ones; there are blocks for half of the batch."""
    of = schedule([40] * 12, [40] * 12)
    tight = {"num_gpu_blocks_override": 30, "batch_size": 12}
    asked = [cell("builtin"), *(cell("vllm-hostpath", **tight, setup=s) for s in SETUPS)]
    builtin, *results = run([trial(of, tmp_path, each) for each in asked])
    for each in results:
        assert each.tokens_sha256 == builtin.tokens_sha256
        assert each.metrics["num_steps"] > builtin.metrics["num_steps"]


@pytest.mark.parametrize("setup", some(SETUPS))
def test_what_requests_ask_for_beside_leaves_them_their_tokens(tmp_path, setup):
    """But a grammar, which takes no token that is no text."""
    of = schedule([1 + i * 7 % 20 for i in range(40)], [8 + i for i in range(40)])
    features = "stop+lora:2+samples:2+kv-connector"
    asked = [
        cell("builtin"),
        *(cell("vllm-hostpath", setup=setup, features=each) for each in (features, "grammar")),
    ]
    builtin, several, grammar = run([trial(of, tmp_path, each) for each in asked])
    for each in (several, grammar):
        assert each.lengths_sha256 == builtin.lengths_sha256
        assert each.finish_sha256 == builtin.finish_sha256
    assert several.tokens_sha256 == builtin.tokens_sha256
    assert grammar.tokens_sha256 != builtin.tokens_sha256
    assert (bool(several.script), grammar.script) == (True, "")
    assert [each.engine_state["max_num_seqs"] for each in (several, grammar)] == [24, 12]


def test_forks_of_one_interpreter_count_what_interpreters_of_their_own_count(tmp_path, plain):
    trials = [trial(EVEN, tmp_path, even_cell(), mode) for mode in [*EXACT_MODES, "probed"]]
    together = {each.mode: each for each in LocalExecutor(TIMEOUT_SECONDS).run(trials)}
    others = [each for each in trials if each.mode not in (plain.mode, "probed")]
    alone = [plain, *(run([each])[0] for each in others[: len(others) // every()])]
    for each in alone:
        assert exact_figures(together[each.mode]) == exact_figures(each), each.mode
    watching_changes_little(*(together[mode] for mode in ("counts", "probed", "tracked")))


def watching_changes_little(counts: TrialResult, probed: TrialResult, tracked: TrialResult) -> None:
    ran, seen = counts.processes[0].collections, probed.processes[0].collections
    assert ran[0] > 0
    assert max(abs(there - here) for there, here in zip(ran, seen, strict=True)) <= 1
    # The scheduler makes a list a request, and all of them are alive at once.
    assert tracked.metrics["tracked_peak_per_step"] > 16
    assert tracked.processes[0].collections == (0, 0, 0)
    assert counts.tokens_sha256 == tracked.tokens_sha256
    assert counts.metrics["num_steps"] == tracked.metrics["num_steps"]


UNJUDGED = "tracked_heap"
"""Of 630,000 objects a fork was seen to have one more than an interpreter of its own."""


def exact_figures(result: TrialResult | TrialFailure) -> dict[str, float | None]:
    assert isinstance(result, TrialResult), result.reason
    return {
        name: value
        for name, value in result.metrics.items()
        if METRICS[name].kind == "exact" and name != UNJUDGED
    }


LOOP = "        for _ in range(40):\n            pass\n"
PLANTED = {
    "v1/engine/input_processor.py": "        self._validate_lora(lora_request)\n",
    "v1/core/sched/scheduler.py": "        existing = self.requests.get(request.request_id)\n",
}
"""Where a request passes once, between the client and the queue of the scheduler."""


def test_work_planted_where_requests_are_added_is_in_their_cost_alone(tmp_path, plain, pinned_vllm):
    copy = tmp_path / "copy" / "vllm"
    shutil.copytree(VLLM.layer(pinned_vllm) / "vllm", copy)
    for name, line in PLANTED.items():
        text = (copy / name).read_text()
        assert text.count(line) == 1
        (copy / name).write_text(text.replace(line, line + LOOP))
    asked = even_cell(release=str(copy.parent))
    (result,) = run([trial(EVEN, tmp_path, asked, "opcodes")])
    before, planted = plain.metrics, result.metrics
    counted = [name for name in before if name.startswith(("bytecodes_", "allocations_"))]
    assert len(counted) == 7
    assert {name for name in counted if planted[name] != before[name]} == {"bytecodes_per_add"}
    assert planted["bytecodes_per_add"] > before["bytecodes_per_add"] + 2 * 40


def test_scripted_drafts_are_accepted_as_by_the_built_in_engine(tmp_path):
    """In as many steps, so that vLLM's scheduler has taken each draft that was meant to hold."""
    ragged = schedule(
        [1 + i * 7 % 20 for i in range(40)], PROMPT_LENS, num_accepted=np.array([1, 2, 4, 3])
    )
    cells = ({}, BOTH, {"output_processing": "overlapped"}, {"setup": "served"})[:: every()]
    asked = [cell("builtin"), *(cell("vllm-hostpath", **axes) for axes in cells)]
    builtin, *vllm = run([trial(ragged, tmp_path, each) for each in asked])
    for each in vllm:
        for name in ("tokens_sha256", "finish_sha256", "lengths_sha256"):
            assert getattr(each, name) == getattr(builtin, name)
        assert each.engine_state["num_spec_tokens"] == 3
    assert vllm[0].metrics["num_steps"] == builtin.metrics["num_steps"]


def check_state(process: ProcessResult, gc: str) -> None:
    """The collector as it was read back, whichever process it is of."""
    state = process.state
    if gc == "as_is":  # vLLM freezes what its engine core has built
        assert state.enabled
        assert process.role != "engine" or state.freeze_count > 100_000
        return
    assert state.enabled == (gc != "disabled")
    assert state.thresholds == ((5000, 20, 30) if "threshold" in gc else DEFAULT_THRESHOLDS)
    frozen = state.freeze_count / state.tracked_objects
    assert frozen == pytest.approx(1.0 if gc == "freeze" else 0.0, abs=0.01)
    assert gc != "disabled" or process.collections == (0, 0, 0)


def test_what_crosses_to_its_workers_whatever_their_number(tmp_path):
    """Prompts cross with the first step alone, and each rank is sent the same."""
    prompts = [8, 30, 200]
    even = schedule([20] * 3, prompts)
    one, two = run(
        [
            trial(
                even,
                tmp_path,
                cell("vllm-hostpath", worker="process", tensor_parallel=ranks),
                "wire",
            )
            for ranks in (1, 2)
        ]
    )
    assert one.tokens_sha256 == two.tokens_sha256
    assert two.engine_state["tensor_parallel_size"] == 2
    assert [each.role for each in two.processes] == ["engine", "worker", "worker"]
    there, back = one.messages
    assert (there.direction, back.direction) == ("scheduler_output", "model_runner_output")
    assert set(there.fields) == set(two.messages[0].fields)
    assert there.fields["num_scheduled_tokens"] == two.messages[0].fields["num_scheduled_tokens"]
    values = one.metrics
    first = values["scheduler_output_bytes_first"] - values["scheduler_output_bytes_per_step"]
    assert first > 2 * sum(prompts)
    assert "sampled_token_ids" in back.fields
    for direction in ("scheduler_output", "model_runner_output"):
        parts = (values[f"{direction}_bytes_{part}"] for part in PARTS)
        assert sum(parts) == values[f"{direction}_bytes_per_step"]
    assert values["scheduler_output_edit_distance"] < 60
    assert values["scheduler_output_edit_distance_first"] > 2 * sum(prompts)


def test_a_trial_that_is_ended_early_leaves_steps_under_way_behind(tmp_path):
    endless = schedule([10_000] * 12, [8] * 12)
    axes = BOTH | {"output_processing": "overlapped", "gc": "as_is"}
    asked = cell("vllm-hostpath", **axes)
    (result,) = run([trial(endless, tmp_path, asked, max_steps=5)])
    assert result.metrics["num_steps"] == 5
    assert [process.role for process in result.processes] == roles(axes)
    for process in result.processes:
        check_state(process, "as_is")


@pytest.fixture
def short_folder(monkeypatch) -> Path:
    """Where temporary files go; a socket's path has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def offspring(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def wait_for(happened: Callable[[], bool], process: TrialProcess) -> None:
    while not happened():
        assert psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE


KILLED = (("engine_core", "VLLM::EngineCore", "engine"), ("worker", "VLLM::Worker", "worker"))
"""Which axis makes the process, its name, and its role in a result."""


@pytest.mark.parametrize(("axis", "name", "role"), KILLED[:: every()])
def test_a_process_of_vllm_that_is_killed_ends_the_trial_in_a_sentence(
    tmp_path, short_folder, axis, name, role
):
    from engines.vllm.device_log import DeviceLog

    endless = schedule([1_000_000], [8])
    before = {child.pid for child in offspring(os.getpid())}
    asked = cell(
        "vllm-hostpath", device="modelled", device_profile="opt-125m-h200", **{axis: "process"}
    )
    trials = TrialBatch(trials=[trial(endless, tmp_path, asked)])
    with TrialInterpreter(trials, TIMEOUT_SECONDS) as interpreter:
        (process,) = interpreter.trials
        process.wait_until_ready()
        (path,) = short_folder.glob("*/gcbench-vllm-*/device-log")
        log = DeviceLog(str(path))
        process.go()
        wait_for(lambda: log.read().modelled_ns > 0, process)
        started = offspring(process.pid)
        (victim,) = (each for each in started if each.name() == name)
        assert victim.cpu_affinity() == psutil.Process(process.pid).cpu_affinity()
        victim.kill()
        outcome = process.measure()
    assert isinstance(outcome, TrialFailure)
    assert outcome.kind == "crashed"
    assert outcome.reason == f"its process ended with status 1: vLLM's {role} process has ended"
    _, alive = psutil.wait_procs(started, timeout=TIMEOUT_SECONDS)
    assert alive == []
    assert {child.pid for child in offspring(os.getpid())} <= before
    assert list(short_folder.iterdir()) == []
