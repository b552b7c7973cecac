"""What mode ``outputs`` answers: hashes of what steps gave requests, and functions that ran."""

import re
from typing import NamedTuple

import msgspec

from gcbench.function_costs import FunctionCost

OUTPUT_KINDS = ("tokens", "reasons", "text", "logprobs")
"""What a request is given; text and log-probabilities are hashes in the log."""
OUTPUT_COLUMNS = ("kind", "request", "place", "step", "value")
"""Of the log. ``place``: the how many-th of its kind; from 0, as steps."""


QualifiedName = tuple[str, str]
"""A file below the folder it was imported from, and a qualified name."""

_WITHIN = re.compile(r"(\.<locals>\.<\w+>)+$")


def of_function(file: str, name: str) -> QualifiedName:
    """The function that a code object is part of: a comprehension has none of its own."""
    return file, _WITHIN.sub("", name)


class OutputHashes(msgspec.Struct, frozen=True, kw_only=True):
    """SHA-256 of all that steps have given, request by request in the order of its steps.

    In which step it came decides none of them. ``counts``: how many tokens each request got, which
    agrees where tokens need not. ``text`` and ``logprobs`` are "" where no step gives any.
    ``path``: where the log itself lies, "" where it was not kept.
    """

    tokens: str
    counts: str
    reasons: str
    text: str = ""
    logprobs: str = ""
    path: str = ""


class RanFunction(NamedTuple):
    """By its file below the folder it was imported from, and its qualified name.

    ``lines``: those that ran, in order; none where nobody has looked.
    """

    file: str
    name: str
    lines: tuple[int, ...] = ()

    @classmethod
    def counted(cls, function: FunctionCost) -> "RanFunction":
        """One whose bytecodes have been counted, and so its lines."""
        return cls(function.file, function.name, tuple(each.line for each in function.lines))
