"""Functions as they are when they were counted, made of a few sources."""

import re
from collections.abc import Callable

from gcbench.function_costs import FunctionCost, signature

SUM = """
def NAME(rows, limit):
    total = 0
    for row in rows:
        if row.finished and row.count < limit:
            total += row.count * 2
        elif row.waiting:
            total -= len(row.tokens)
    return total
"""
JOIN = """
def NAME(rows, sep):
    texts = []
    for row in rows:
        texts.append(str(row.text).strip().lower())
        texts.extend(row.more or [])
    return sep.join(sorted(set(texts)))
"""
BOTH = """
def NAME(rows, limit, sep):
    total = 0
    for row in rows:
        if row.finished and row.count < limit:
            total += row.count * 2
        elif row.waiting:
            total -= len(row.tokens)
    texts = []
    for row in rows:
        texts.append(str(row.text).strip().lower())
        texts.extend(row.more or [])
    return total, sep.join(sorted(set(texts)))
"""


def function(
    source: str, name: str, file: str = "engine/core.py", line: int = 1, bytecodes: int = 10
) -> FunctionCost:
    """One that executed so many bytecodes, its own."""
    short = re.sub(r"\W", "_", name)
    namespace: dict[str, Callable] = {}
    exec(source.replace("NAME", short), namespace)
    code = signature(namespace[short].__code__)
    return FunctionCost("rest", file, name, line, 1, bytecodes, 0, 0, bytecodes, 0, [], code)
