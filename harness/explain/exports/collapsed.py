"""Collapsed stacks: what flamegraph.pl, inferno and speedscope read."""

from urllib.parse import quote

from gcbench.function_costs import FunctionCost
from harness.explain.exports.stacks import Count, stacks
from harness.trial.step_costs import StepCosts


def collapsed_stacks(costs: StepCosts, count: Count = "bytecodes") -> bytes:
    """A line ``file:function;file:function COUNT`` for each stack, UTF-8, the outermost first.

    ``COUNT`` is over all steps that were traced; a stack is there once, none that counted nothing.
    What would end a frame or a line is written as in a URL: `urllib.parse.unquote` takes it back.
    The format: https://github.com/brendangregg/FlameGraph#2-fold-stacks.
    """
    frames = [_frame(each) for each in costs.functions]
    totals: dict[str, int] = {}
    for stack in stacks(costs, count):
        line = ";".join(frames[place] for place in stack.functions)
        totals[line] = totals.get(line, 0) + stack.own
    return "".join(f"{line} {total}\n" for line, total in totals.items()).encode()


def _frame(function: FunctionCost) -> str:
    return _escaped(f"{function.file}:{function.name}")


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() and each not in " ;%" else quote(each, safe="") for each in text
    )
