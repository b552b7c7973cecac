"""GitHub's workflow commands: printed by a job, they mark the lines that cost more.

The form is that of GitHub's docs on workflow commands: ``::error file=,line=,title=::text``.
"""

from collections.abc import Iterator
from pathlib import PurePath

from harness.explain.largest_changes import LargestChange
from harness.tracking.gate.exact_words import signed_amount
from harness.tracking.gate.result import GateResult

_FAILS = ("worse", "trade")
_MOST = 9
"""With the verdict ten: GitHub shows no more errors of a step."""


def annotations(result: GateResult) -> bytes:
    """The verdict, then the functions of which a loss is made, then those that no cell has run."""
    return "".join(f"{line}\n" for line in _lines(result)).encode()


def _lines(result: GateResult) -> Iterator[str]:
    title = f"gcbench gate: {result.verdict}"
    level = "error" if result.verdict in _FAILS else "warning" if result.missing else "notice"
    yield _command(level, "\n".join([*result.conclusions, *result.missing]), title=title)
    dearer = {
        (each.file, each.line): each
        for cell in result.cells
        if cell.verdict in _FAILS
        for each in cell.functions
        if each.kind != "gone" and max(each.bytecodes, each.allocations) > 0
    }
    for each in list(dearer.values())[:_MOST]:
        file = _in_repository(each.file, result.package)
        yield _command("error", _cost(each), file=file, line=each.line, title=title)
    for function in result.not_run[:_MOST]:
        text = f"no cell has run {function.name}, which differs"
        file = _in_repository(function.file, result.package)
        yield _command("warning", text, file=file, line=function.line, title=title)


def _in_repository(file: str, package: str) -> str:
    """A file of the package is named below the folder that the package is imported from."""
    path = PurePath(package)
    return str(path.parent / file) if file.startswith(f"{path.name}/") else file


def _cost(each: LargestChange) -> str:
    whence = "request and step" if each.when == "step" else f"request, {each.when}"
    counts = ((each.bytecodes, "bytecodes"), (each.allocations, "tracked objects"))
    words = " and ".join(f"{signed_amount(by, '')} {what}" for by, what in counts if by)
    return f"{each.function}: {words} per {whence}"


def _command(level: str, text: str, **properties: str | int) -> str:
    shown = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items())
    return f"::{level} {shown}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:  # the percent sign first: it begins what the others become
        text = text.replace(character, f"%{ord(character):02X}")
    return text
