"""The measured window: in force while it is open, exact, and gone without a trace."""

import gc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec
import pytest

from harness.collector.phase import Phase
from harness.collector.policy import DEFAULT_THRESHOLDS
from harness.collector.result import ProcessResult
from harness.collector.window import close_window, open_window, window_events, window_refusal

BATCH_SIZE = 1024
POLICIES = (
    "as_is",
    "default",
    "threshold:5000/5/2",
    "batch_threshold",
    "freeze",
    "freeze+threshold:2000",
    "disabled",
    "on_wait",
)


def settings() -> tuple[Any, ...]:
    return gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)


def churn(role: str, steps: int) -> None:
    kept = []
    for _ in range(steps):
        batch: list[list[int]] = [[] for _ in range(BATCH_SIZE)]
        kept.append(batch[:10])


@pytest.fixture(autouse=True)
def start_unfrozen() -> None:
    """CPython 3.12 starts with its immortal objects frozen, and `restore` does not do it again."""
    gc.unfreeze()


@pytest.mark.parametrize("probe", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_state_is_in_force_then_as_before(policy: str, probe: bool) -> None:
    before = settings()
    assert open_window("engine", policy, BATCH_SIZE, probe, Phase(1, 0.3)) == ""
    inside = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0
    churn("engine", 3)
    result = close_window("engine")
    assert settings() == before
    assert (result.role, result.policy) == ("engine", policy)
    assert inside == (result.state.enabled, result.state.thresholds, result.state.freeze_count > 0)
    assert window_refusal() == ""
    assert result.state.tracked_objects > 1000
    assert (result.full_pass_seconds > 0) == probe


def test_collections_pauses_and_events_agree() -> None:
    assert open_window("engine", "threshold:500/3/2", BATCH_SIZE, True, Phase(5, 0.3)) == ""
    churn("engine", 40)
    gc.collect()
    result = close_window("engine")
    events = window_events()
    assert min(result.collections) >= 1
    for generation in range(3):
        of_it = events.duration_ns[events.generation == generation]
        assert len(of_it) == result.collections[generation]
        assert result.pause_seconds[generation] == pytest.approx(of_it.sum() / 1e9)
        freed = events.collected[events.generation == generation].sum()
        assert freed == result.collected[generation]
    assert result.max_pause_seconds == events.duration_ns.max() / 1e9
    assert result.probe_dropped == 0


def test_without_a_probe_there_are_counts_and_no_pauses() -> None:
    assert open_window("engine", "default", BATCH_SIZE, False, None) == ""
    gc.collect(0)
    gc.collect(2)
    result = close_window("engine")
    assert result.collections[2] == 1
    assert result.collections[0] >= 1
    assert result.pause_seconds == (0, 0, 0)
    assert len(window_events().generation) == 0


def test_disabled_collects_nothing() -> None:
    assert open_window("engine", "disabled", BATCH_SIZE, True, Phase(3, 0.3)) == ""
    churn("engine", 50)
    assert close_window("engine").collections == (0, 0, 0)


def test_an_empty_window_is_empty_at_every_phase() -> None:
    for phase in (None, *(Phase(seed, seed / 8) for seed in range(8))):
        assert open_window("engine", "default", BATCH_SIZE, False, phase) == ""
        assert sum(close_window("engine").collections) <= (phase is not None)


def test_the_seed_moves_the_counts_by_less_than_a_collection_of_each() -> None:
    reached = []
    for seed in range(12):
        assert (
            open_window("engine", "threshold:700/10/10", BATCH_SIZE, False, Phase(seed, 0.3)) == ""
        )
        churn("engine", 8)
        reached.append(close_window("engine").collections)
    young = [sum(collections) for collections in reached]
    assert max(young) - min(young) <= 1
    assert len(set(reached)) > 1


def test_a_state_that_does_not_hold_is_refused_and_undone(monkeypatch) -> None:
    freeze = gc.freeze

    def meddle() -> None:
        """As a library's own `gc.freeze`, which thinks that it knows better."""
        freeze()
        gc.set_threshold(9, 9, 9)

    before = gc.isenabled(), gc.get_threshold()
    monkeypatch.setattr(gc, "freeze", meddle)
    refusal = open_window("engine", "freeze", BATCH_SIZE, True, None)
    assert "(9, 9, 9)" in refusal
    assert refusal.endswith(".")
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == (*before, 0)
    with pytest.raises(RuntimeError, match="No window is open in the engine process"):
        close_window("engine")


def test_a_state_that_changed_in_the_window_is_named() -> None:
    assert open_window("engine", "disabled", BATCH_SIZE, False, None) == ""
    gc.enable()
    close_window("engine")
    assert "automatic collection is on, not off" in window_refusal()
    assert open_window("engine", "disabled", BATCH_SIZE, False, None) == ""
    close_window("engine")
    assert window_refusal() == ""


def test_one_window_at_a_time() -> None:
    assert open_window("engine", "default", BATCH_SIZE, False, None) == ""
    with pytest.raises(RuntimeError, match="A window is open in the engine process"):
        open_window("engine", "default", BATCH_SIZE, False, None)
    close_window("engine")


def test_a_wrong_policy_changes_nothing() -> None:
    before = settings()
    with pytest.raises(ValueError, match="no collector policy"):
        open_window("engine", "defualt", BATCH_SIZE, False, None)
    assert settings() == before


def test_a_window_can_be_had_in_another_process() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
        call = worker.submit
        policy = "disabled@engine+threshold:300@worker"
        assert call(open_window, "worker", policy, BATCH_SIZE, True, Phase(1, 0.3)).result() == ""
        call(churn, "worker", 20).result()
        result = call(close_window, "worker").result()
        events = call(window_events, "worker").result()
        assert call(window_refusal, "worker").result() == ""
    assert result.state.thresholds == (300, *DEFAULT_THRESHOLDS[1:])
    assert (result.role, result.policy) == ("worker", "threshold:300")
    assert len(events.generation) == sum(result.collections) > 0
    read_back = msgspec.json.decode(msgspec.json.encode(result), type=ProcessResult)
    assert read_back == result


EXACT = """
import gc, json, sys
from harness.collector.on_wait import busy_hook
from harness.collector.phase import Phase
from harness.collector.window import close_window, open_window
reached = {}
for policy in sys.argv[1:]:
    for seed in (None, 11):
        phase = None if seed is None else Phase(seed, 0.4)
        assert open_window("engine", policy, 1024, False, phase) == ""
        hook = busy_hook("engine", policy) or (lambda: None)
        kept = []
        for step in range(60):
            batch = [[step] for _ in range(1024)]
            kept.append([{"ids": ids} for ids in batch[:200]])
            hook()
        result = close_window("engine")
        reached[f"{policy} {seed}"] = result.collections, result.collected, (
            result.state.tracked_objects)
        del batch, kept
print(json.dumps(reached))
"""


@pytest.mark.slow
def test_counts_repeat_to_the_digit_in_fresh_interpreters(fresh_interpreter) -> None:
    reached = [fresh_interpreter(EXACT, *POLICIES) for _ in range(5)]
    assert all(again == reached[0] for again in reached[1:])
    counts = {name: collections for name, (collections, _, _) in reached[0].items()}
    assert counts["disabled None"] == [0, 0, 0]
    assert counts["on_wait None"] == [54, 6, 0]
    assert counts["default None"][0] > counts["threshold:5000/5/2 None"][0] > 0
    assert counts["batch_threshold None"] != counts["default None"]
