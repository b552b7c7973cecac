"""A policy applied, read back, held against what was asked, and undone."""

import gc
from collections.abc import Iterator

import pytest

from harness.collector.policy import DEFAULT_THRESHOLDS
from harness.collector.result import GcState
from harness.collector.state import apply_policy, check_state, read_state, restore, snapshot

GEN0, GEN1, GEN2 = DEFAULT_THRESHOLDS
BATCH_SIZE = 1024


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = snapshot()
    yield
    restore(before)


@pytest.mark.parametrize(
    ("text", "enabled", "thresholds", "frozen"),
    [
        ("default", True, (GEN0, GEN1, GEN2), False),
        ("threshold:50000", True, (50000, GEN1, GEN2), False),
        ("threshold:50000/20", True, (50000, 20, GEN2), False),
        ("threshold:50000/20/5", True, (50000, 20, 5), False),
        ("batch_threshold", True, (GEN0 + BATCH_SIZE, GEN1, GEN2), False),
        ("freeze", True, (GEN0, GEN1, GEN2), True),
        ("freeze+threshold:50000/20/5", True, (50000, 20, 5), True),
        ("disabled", False, (GEN0, GEN1, GEN2), False),
        ("disabled+freeze", False, (GEN0, GEN1, GEN2), True),
        ("on_wait", False, (GEN0, GEN1, GEN2), False),
        ("disabled@client", True, (GEN0, GEN1, GEN2), False),
        ("disabled@engine", False, (GEN0, GEN1, GEN2), False),
    ],
)
def test_every_policy_is_what_is_read_back(
    text: str, enabled: bool, thresholds: tuple[int, int, int], frozen: bool
) -> None:
    gc.set_threshold(123, 4, 5)
    gc.disable()
    gc.collect()
    apply_policy("engine", text, BATCH_SIZE)
    state = read_state()
    assert (state.enabled, state.thresholds) == (enabled, thresholds)
    assert (state.freeze_count > state.tracked_objects / 2) == frozen
    assert check_state("engine", text, BATCH_SIZE, state) == ""


def test_as_is_leaves_everything() -> None:
    gc.set_threshold(123, 4, 5)
    gc.disable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    apply_policy("engine", "as_is", BATCH_SIZE)
    state = read_state()
    assert (state.enabled, state.thresholds) == (False, (123, 4, 5))
    assert 0 < state.freeze_count <= frozen
    assert check_state("engine", "as_is", BATCH_SIZE, state) == ""


def test_a_frozen_heap_is_counted_as_tracked() -> None:
    before = read_state().tracked_objects
    gc.freeze()
    assert abs(read_state().tracked_objects - before) < 100


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        ("disabled", (True, (GEN0, GEN1, GEN2), 0), "automatic collection is on, not off"),
        ("default", (False, (GEN0, GEN1, GEN2), 0), "automatic collection is off, not on"),
        ("threshold:9/8/7", (True, (9, 8, 6), 0), r"thresholds are \(9, 8, 6\), not \(9, 8, 7\)"),
        ("batch_threshold", (True, (GEN0, GEN1, GEN2), 0), "thresholds are"),
        ("freeze", (True, (GEN0, GEN1, GEN2), 0), "0 of 1000000 objects are frozen, not all"),
        ("default", (True, (GEN0, GEN1, GEN2), 704282), "704282 of .*, not none"),
    ],
)
def test_a_state_that_was_not_asked_for_is_refused(
    text: str, state: tuple[bool, tuple[int, int, int], int], message: str
) -> None:
    enabled, thresholds, frozen = state
    read = GcState(
        enabled=enabled, thresholds=thresholds, freeze_count=frozen, tracked_objects=10**6
    )
    refusal = check_state("worker", text, BATCH_SIZE, read)
    with pytest.raises(ValueError, match=f"the worker process is not what --gc '.*{message}"):
        raise ValueError(refusal)


def test_the_immortal_objects_that_python_312_freezes_by_itself_are_no_frozen_heap() -> None:
    state = GcState(
        enabled=True, thresholds=DEFAULT_THRESHOLDS, freeze_count=375, tracked_objects=5800
    )
    assert check_state("engine", "default", BATCH_SIZE, state) == ""
    assert "not all" in check_state("engine", "freeze", BATCH_SIZE, state)


@pytest.mark.parametrize("enabled", [True, False])
def test_restore_puts_back_settings_and_unfreezes(enabled: bool) -> None:
    gc.set_threshold(321, 6, 7)
    (gc.enable if enabled else gc.disable)()
    before = snapshot()
    apply_policy("engine", "freeze+threshold:50000/20/5", BATCH_SIZE)
    restore(before)
    assert (gc.isenabled(), gc.get_threshold()) == (enabled, (321, 6, 7))
    assert gc.get_freeze_count() == 0


def test_restore_leaves_frozen_what_an_engine_had_frozen() -> None:
    gc.freeze()
    before = snapshot()
    apply_policy("engine", "as_is", BATCH_SIZE)
    restore(before)
    assert gc.get_freeze_count() > 0
