"""Costs by function are right for code that calls itself, comes from a string or goes through C."""

from collections.abc import Callable
from functools import cmp_to_key

import pytest

from gcbench.function_costs import CountedCalls, FunctionCost, counted_calls
from gcbench.opcodes import OpcodeCounter


def counted(work: Callable[[], object]) -> CountedCalls:
    counter = OpcodeCounter()
    with counter:
        work()
    found = counted_calls(counter.tree, {})
    assert sum(each.bytecodes for each in found.functions) == counter.num_opcodes
    assert sum(each.allocations for each in found.functions) == counter.num_allocations
    return found


def costs_of(name: str, found: CountedCalls) -> FunctionCost:
    (one,) = (each for each in found.functions if each.name.split("(")[0] == name)
    return one


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def is_even(n: int) -> bool:
    return n == 0 or is_odd(n - 1)


def is_odd(n: int) -> bool:
    return n != 0 and is_even(n - 1)


def test_a_function_that_calls_itself_counts_each_call_once():
    one = costs_of("fibonacci", counted(lambda: fibonacci(12)))
    assert one.calls == 465
    assert one.all_bytecodes == one.bytecodes


def test_two_that_call_each_other_are_each_in_the_other_once():
    found = counted(lambda: is_even(40))
    even, odd = costs_of("is_even", found), costs_of("is_odd", found)
    assert (even.calls, odd.calls) == (21, 20)
    assert even.all_bytecodes == even.bytecodes + odd.bytecodes
    assert odd.bytecodes < odd.all_bytecodes < even.all_bytecodes  # all but the first call


def test_code_that_was_made_from_a_string_has_its_lines():
    made: dict[str, Callable[[int], list[int]]] = {}
    exec(compile("def made(n):\n    return [n]\n", "<made here>", "exec"), made)
    one = costs_of("made", counted(lambda: made["made"](3)))
    assert (one.name, one.file) == ("made(n)", "<made here>")
    assert one.lines[-1].line == 2
    assert one.lines[-1].bytecodes > 0


def compare(a: int, b: int) -> int:
    return a - b


def test_what_c_calls_back_stands_under_who_called_c():
    found = counted(lambda: sorted(range(50, 0, -1), key=cmp_to_key(compare)))
    one = costs_of("compare", found)
    (call,) = (each for each in found.calls if found.functions[each.function] == one)
    assert call.calls == one.calls > 40
    assert found.functions[found.calls[call.parent].function].name.endswith("<lambda>")


def refuses(n: int) -> int:
    if n % 3:
        raise KeyError(n)
    return n


def tries() -> int:
    done = 0
    for n in range(30):
        try:
            done += refuses(n)
        except KeyError:
            continue
        finally:
            done += 1
    return done


def test_exceptions_as_control_flow_end_their_frames():
    found = counted(tries)
    raising, outer = costs_of("refuses", found), costs_of("tries", found)
    assert (raising.calls, outer.calls) == (30, 1)
    assert outer.all_bytecodes == outer.bytecodes + raising.bytecodes


def test_one_that_leaves_by_an_exception_has_been_counted_until_then():
    counter = OpcodeCounter()
    with pytest.raises(KeyError), counter:
        refuses(1)
    assert costs_of("refuses", counted_calls(counter.tree, {})).calls == 1


def test_what_does_nothing_costs_nothing():
    counter = OpcodeCounter()
    with counter:
        pass
    assert counted_calls(counter.tree, {}) == CountedCalls([], [])
