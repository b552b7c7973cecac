"""Collecting by hand while the device is busy."""

import gc

import pytest

from harness.collector.on_wait import busy_hook


def collections() -> list[int]:
    return [generation["collections"] for generation in gc.get_stats()]


def collections_of(text: str, waits: int) -> list[int]:
    hook = busy_hook("engine", text)
    assert hook is not None
    before = collections()
    gc.disable()
    for _ in range(waits):
        hook()
    gc.enable()
    return [after - b for b, after in zip(before, collections(), strict=True)]


@pytest.mark.parametrize(
    ("text", "waits", "expected"),
    [
        ("on_wait:0", 9, [9, 0, 0]),
        ("on_wait:0", 25, [23, 2, 0]),
        ("on_wait:7", 20, [16, 2, 2]),
        ("on_wait:20", 40, [36, 2, 2]),
        ("freeze+on_wait", 999, [900, 99, 0]),
        ("on_wait", 1000, [900, 99, 1]),
    ],
)
def test_each_wait_collects_one_generation(text: str, waits: int, expected: list[int]) -> None:
    assert collections_of(text, waits) == expected


@pytest.mark.parametrize("text", ["default", "as_is", "disabled", "freeze", "on_wait@worker"])
def test_other_policies_have_no_hook(text: str) -> None:
    assert busy_hook("engine", text) is None
