"""An endless loop, one turn at a time, is still the code that it was."""

import sys

import pytest

from engines.sglang.loop import pausing

SOURCE = '''\
"""A scheduler of a test."""


def counted(function):
    @functools.wraps(function)
    def call(*arguments):
        calls.append(function.__name__)
        return function(*arguments)

    return call


class Scheduler:
    def __init__(self):
        self.turns = []

    @counted
    def event_loop(self):
        self.turns.append("set up")

        def note(turn):
            self.turns.append(turn)

        while True:
            if len(self.turns) % 2:
                note("odd")
                continue
            note("even")

    def forward(self):
        with suppress(KeyError):
            while True:
                self.turns.append("forward")

    def no_loop(self):
        return [each for each in self.turns]
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "of_a_test.py").write_text(
        "import functools\nfrom contextlib import suppress\ncalls = []\n" + SOURCE
    )
    monkeypatch.syspath_prepend(tmp_path)
    import of_a_test

    yield of_a_test
    del sys.modules["of_a_test"]


def test_a_turn_at_a_time_also_where_the_loop_goes_on_early(module):
    scheduler = module.Scheduler()
    turns = pausing(module.Scheduler.event_loop)(scheduler)
    next(turns)
    assert scheduler.turns == ["set up"], "it pauses before its first turn"
    for _ in range(3):
        next(turns)
    assert scheduler.turns == ["set up", "odd", "even", "odd"]


def test_a_loop_within_a_block(module):
    scheduler = module.Scheduler()
    turns = pausing(module.Scheduler.forward)(scheduler)
    for _ in range(3):
        next(turns)
    assert scheduler.turns == ["forward"] * 2


def test_names_lines_and_decorators_stay(module):
    made = pausing(module.Scheduler.event_loop)
    original = module.Scheduler.event_loop.__wrapped__.__code__
    code = made.__wrapped__.__code__
    assert (code.co_filename, code.co_qualname) == (original.co_filename, original.co_qualname)
    lines = {line for *_, line in original.co_lines() if line}
    assert {line for *_, line in code.co_lines() if line} == lines
    made(module.Scheduler())
    assert module.calls == ["event_loop"]


def test_it_sees_what_is_changed_in_its_module_afterwards(module):
    seen = []
    turns = pausing(module.Scheduler.event_loop)(module.Scheduler())
    module.len = lambda _: seen.append(1) or 1
    next(turns)
    next(turns)
    assert seen == [1]


def test_what_has_no_loop_is_refused_by_name(module):
    with pytest.raises(ValueError, match="no_loop has no loop"):
        pausing(module.Scheduler.no_loop)
