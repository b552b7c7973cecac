"""The counter of bytecodes: what it counts is what a walk through `dis` says was executed."""

import _thread
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from statistics import mode
from types import CodeType
from typing import Any, NamedTuple

import pytest
from bytecode_walker import Raised, Walk, codes
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gcbench.call_cost import measure_call
from gcbench.opcodes import OpcodeCounter, tracers

pytestmark = pytest.mark.usefixtures("frozen_heap", "no_collector")


LEAVES = st.sampled_from(
    [
        "x = x + 1",
        "raise ValueError",
        "return",
        "y = [a for a in range(next(tape, 0)) if next(tape, 0)]",
        "y = list(a for a in range(next(tape, 0)))",
        "again()",
        "pad",
    ]
)
KINDS = st.sampled_from(
    ["if", "for", "while", "except", "finally", "with", "def", "generator", "coroutine"]
)
BLOCKS = st.recursive(
    st.lists(LEAVES, min_size=1, max_size=3),
    lambda inner: st.lists(LEAVES | st.tuples(KINDS, inner, inner), min_size=1, max_size=3),
    max_leaves=8,
)
TAPES = st.lists(st.integers(0, 3), max_size=20)

PREAMBLE = """
from types import coroutine

@coroutine
def suspend():
    yield

def again():
    if next(tape, 0):
        again()

def main():
 x = 0
"""


class Program(NamedTuple):
    """A function ``main``, all that it calls, and where they find the tape."""

    namespace: dict[str, Any]
    functions: dict[str, CodeType]

    def run(self, tape: list[int]) -> None:
        """Take the way that the tape says, to its end or exception."""
        self.namespace["tape"] = iter(tape)
        with suppress(ValueError):
            self.namespace["main"]()

    def walked(self, tape: list[int]) -> int:
        """How many bytecodes that executes, according to `dis`."""
        walk = Walk(self.functions, tape)
        with suppress(Raised):
            walk.call("main")
        return walk.num_bytecodes

    def counted(self, tape: list[int]) -> int:
        """How many of them the counter counts."""
        main = self.namespace["main"]
        self.namespace["tape"] = iter(tape)
        with OpcodeCounter() as counter:
            try:  # noqa: SIM105  # the bytecodes of suppress() would count
                main()
            except ValueError:
                pass
        return counter.num_opcodes


def program(block: list) -> Program:
    """The program of nested statements."""
    source = PREAMBLE + "\n".join(lines(block, iter(range(1000))))
    code = compile(source, "program", "exec")
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return Program(namespace, codes(code))


def lines(block: list, numbers: Iterator[int], suspends: str = "", is_loop: bool = False):
    """Source, indented by one. It begins with ``suspends``; ``is_loop``: it may not be left.

    Who leaves a loop over a generator closes it, which the walk through `dis` does not follow.
    """
    text = [suspends] if suspends else []
    for each in block:
        if each == "pad":  # so long that jumps over it need EXTENDED_ARG
            text += ["x = 1"] * 200
        elif isinstance(each, str):
            text.append("pass" if is_loop and each == "return" else each)
        else:
            text += compound(*each, numbers, suspends, is_loop)
    return [" " + line for line in text]


def compound(kind: str, first: list, second: list, numbers, suspends: str, is_loop: bool):
    """A statement that has others in it."""
    name = f"{kind}{next(numbers)}"

    def inner(block: list) -> list[str]:
        return lines(block, numbers, suspends, is_loop)

    def function(suspends: str = "") -> list[str]:
        return [" nonlocal x", *lines(first, numbers, suspends)]

    body = [" " + line for line in lines(second, numbers, suspends, is_loop=True)]
    consumed = [" try:", *body, " except ValueError:", "  pass"]
    match kind:
        case "if":
            text = ["if next(tape, 0):", *inner(first), "else:", *inner(second)]
        case "for":
            text = ["for _ in range(next(tape, 0)):", *inner(first)]
        case "while":
            text = ["while next(tape, 0):", *inner(first)]
        case "except":
            text = ["try:", *inner(first), "except ValueError:", *inner(second)]
        case "finally":
            text = ["try:", *inner(first), "finally:", *inner(second)]
        case "with":
            text = ["with memoryview(b''):", *inner(first)]
        case "def":
            text = [f"def {name}():", *function(), f"{name}()"]
        case "generator":
            text = [
                f"def {name}():",
                *function("yield"),
                " yield from range(next(tape, 0))",
                f"for _ in {name}():",
                *consumed,
            ]
        case _ if suspends == "await suspend()":
            text = [f"async def {name}():", *function(suspends), f"await {name}()"]
        case _:
            text = [
                f"async def {name}():",
                *function("await suspend()"),
                f"for _ in {name}().__await__():",
                *consumed,
            ]
    return text


@given(block=BLOCKS, tape=TAPES)
def test_bytecodes_are_those_that_a_walk_through_dis_executes(block, tape):
    tested = program(block)
    cold = tested.counted(tape)
    for _ in range(100):  # the interpreter specialises what runs often
        tested.run(tape)
    assert [cold, tested.counted(tape)] == [tested.walked(tape)] * 2


def counted(call: Callable[[], object]) -> int:
    """The bytecodes of a call."""
    with OpcodeCounter() as counter:
        call()
    return counter.num_opcodes


def test_an_instruction_and_its_extended_arguments_are_one():
    def assigns(names: int) -> Callable[[], None]:
        namespace: dict[str, Any] = {}
        exec("def f():\n" + "".join(f" a{i} = None\n" for i in range(names)), namespace)
        return namespace["f"]

    assert counted(assigns(300)) - counted(assigns(200)) == 2 * 100


ENDED = """
def ended():
    try:
        yield
    finally:
        list(a for a in range(next(tape, 0)))
"""


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("starts_before", [True, False])
def test_a_generator_that_is_closed_or_thrown_into_executes_its_handlers(closes, starts_before):
    namespace: dict[str, Any] = {"tape": iter([3])}
    code = compile(ENDED, "source", "exec")
    exec(code, namespace)
    walk = Walk(codes(code), [3])
    walked, ended = walk.frame(codes(code)["ended"]), namespace["ended"]()
    next(walked)
    if starts_before:
        next(ended)
        walk.num_bytecodes = 0
    with suppress(Raised):
        walked.close() if closes else walked.throw(Raised)
    with OpcodeCounter() as counter:
        if not starts_before:
            next(ended)
        try:  # noqa: SIM105  # the bytecodes of suppress() would count
            ended.close() if closes else ended.throw(Raised)
        except Raised:
            pass
    assert counter.num_opcodes == walk.num_bytecodes


def test_a_generator_from_before_goes_on_being_counted():
    def three() -> Iterator[int]:
        yield 1
        yield 2
        yield 3

    first, started = three(), three()
    next(started)
    counter = OpcodeCounter()
    with counter:
        next(first)
    after_one = counter.num_opcodes
    with counter:
        next(first)
    assert 0 < counted(started.__next__) == counter.num_opcodes - after_one


def test_code_that_is_made_and_dropped_counts_each_time():
    def makes(times: int) -> Callable[[], None]:
        def step() -> None:
            for i in range(times):
                exec(f"def f(): return {i}\nf()", {})

        return step

    one, two, many = (counted(makes(times)) for times in (1, 2, 102))
    assert two - one > 5
    assert many - two == 100 * (two - one)


def test_another_threads_bytecodes_are_not_counted():
    def waits(turns: int) -> Callable[[], None]:
        done = threading.Lock()
        done.acquire()

        def other() -> None:
            for _ in range(turns):
                pass
            done.release()

        def step() -> None:
            _thread.start_new_thread(other, ())
            done.acquire()

        return step

    assert counted(waits(1)) == counted(waits(1000))


def made() -> set[int]:
    return {1}


def suspended() -> Iterator[None]:
    yield


def started() -> object:
    generator = suspended()
    next(generator)
    return generator


KEEPS = [
    "kept.append({1})",
    "kept.append([1])",
    "kept.append((kept,))",
    "kept.append({1: kept})",
    "kept.append(made())",
    "kept.append(started())",
]
DROPS = ["{1}", "made()", "for _ in range(1): {1}"]


def figures(statements: list[str]) -> tuple[int, int]:
    """Allocations and peak of a step that keeps a list and a set and then runs the statements."""
    body = ["def step():", " kept = []", " kept.append({1})", *[f" {each}" for each in statements]]
    namespace: dict[str, Any] = {"made": made, "started": started}
    exec("\n".join([*body, " return kept"]), namespace)
    # A thread that pytest-xdist keeps in this process allocates and frees now and then.
    costs = [measure_call(namespace["step"], 1) for _ in range(7)]
    allocations, peaks = zip(*((cost.allocations, cost.peak) for cost in costs), strict=True)
    return mode(allocations), mode(peaks)


@examples(12)
@given(statements=st.lists(st.sampled_from(KEEPS + DROPS), min_size=1, max_size=40))
def test_allocations_and_peak_are_those_of_the_statements(statements):
    kept, most = 0, 0
    for each in statements:
        kept += each in KEEPS
        most = max(most, kept + (each in DROPS))
    # Of the same moment: whether the frame of a step counts depends on what ran before.
    without_statements = figures([])
    allocations, peak = figures(statements)
    assert allocations - without_statements[0] == len(statements)
    assert peak - without_statements[1] == most


def test_nothing_is_left_behind():
    def fails() -> None:
        raise KeyError

    for call in (made, fails):
        with suppress(KeyError), OpcodeCounter():
            call()
        assert tracers() == []
