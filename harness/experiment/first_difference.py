"""What steps gave requests in two trials: in what it differs, and where it does so first."""

import zlib
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from engines.protocol import FinishReason, Int64Array
from harness.axes import Cell
from harness.trial.output_hashes import OUTPUT_COLUMNS, OUTPUT_KINDS
from harness.trial.spec import TrialResult

_KIND, _REQUEST, _PLACE, _STEP, _VALUE = range(len(OUTPUT_COLUMNS))
_NOUNS = {
    "tokens": "tokens",
    "reasons": "finish reasons",
    "text": "text",
    "logprobs": "log-probabilities",
}


class _Place(NamedTuple):
    """Where two logs differ; None where that one has nothing more for the request."""

    step: int
    request: int
    place: int
    value: int | None
    expected: int | None


def follow_one_script(result: TrialResult, expected: TrialResult) -> bool:
    """Whether the tokens of two trials of a workload are to be the same."""
    return result.script == expected.script != ""


def outputs_difference(result: TrialResult, expected: TrialResult) -> str:
    """In what the steps' outputs of two trials differ and where first, in words, or "".

    Tokens need not agree where they are not scripted, only how many each request gets; text and
    log-probabilities only where both cells ask for them alike.
    """
    ours, theirs = result.outputs, expected.outputs
    if ours is None or theirs is None:
        return ""
    scripted = follow_one_script(result, expected)
    if not scripted and ours.counts != theirs.counts:
        return "numbers of tokens for each request"
    kinds = ["tokens", "reasons"] if scripted else ["reasons"]
    if scripted:
        kinds += ["text"] if _text_rules(result.cell) == _text_rules(expected.cell) else []
        kinds += ["logprobs"] if _num_logprobs(result) == _num_logprobs(expected) else []
    for kind in kinds:
        hashes = getattr(ours, kind), getattr(theirs, kind)
        said_by_both = all(hashes) or kind in ("tokens", "reasons")
        # What one commit does not say any more is another output, too.
        if hashes[0] != hashes[1] and (
            said_by_both or result.cell.delivery == expected.cell.delivery
        ):
            where = _first(kind, ours.path, theirs.path)
            return f"{_NOUNS[kind]} ({where})" if where else _NOUNS[kind]
    return ""


def _text_rules(cell: Cell) -> tuple[str, ...]:
    return (
        cell.engine,
        cell.tokenizer,
        cell.detokenizer,
        cell.delivery,
        cell.request_streams,
        cell.output_processing,
    )


def _num_logprobs(result: TrialResult) -> str:
    return result.cell.logprobs.partition(":")[2]


def _first(kind: str, ours: str, theirs: str) -> str:
    """Where two logs first differ in a kind; "" where they are not on this machine."""
    try:
        logs = [_read(path, OUTPUT_KINDS.index(kind)) for path in (ours, theirs)]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return ""
    found = _first_place(*logs)
    if found is None:
        return ""
    place = "" if kind == "reasons" else f", {_NOUNS[kind].removesuffix('s')} {found.place + 1}"
    now, then = (
        "nothing" if value is None else _shown(kind, value)
        for value in (found.value, found.expected)
    )
    values = f": {now} in the place of {then}" if now != then else ""
    return f"first in step {found.step + 1}, request {found.request}{place}{values}"


def _shown(kind: str, value: int) -> str:
    """A value as people read it; of a hash there is nothing to show."""
    if kind == "reasons":
        return FinishReason(value).name.lower()
    return str(value) if kind == "tokens" else "another"


def _read(path: str, kind: int) -> Int64Array:
    with Path(path).open("rb") as file, np.load(file) as arrays:
        log: Int64Array = arrays["log"]
    mine: Int64Array = log[log[:, _KIND] == kind]
    return mine


def _first_place(log: Int64Array, expected: Int64Array) -> _Place | None:
    """The earliest step, then the first request, in which either has what the other has not."""
    places = []
    ours, theirs = (_by_place(each) for each in (log, expected))
    for request, place in ours.keys() | theirs.keys():
        one, other = ours.get((request, place)), theirs.get((request, place))
        if one is None or other is None or one[1] != other[1]:
            step = min(each[0] for each in (one, other) if each is not None)
            values = one[1] if one else None, other[1] if other else None
            places.append(_Place(step, request, place, *values))
    return min(places, key=lambda each: each[:3], default=None)


def _by_place(log: Int64Array) -> dict[tuple[int, int], tuple[int, int]]:
    columns = (log[:, at].tolist() for at in (_REQUEST, _PLACE, _STEP, _VALUE))
    return {
        (request, place): (step, value)
        for request, place, step, value in zip(*columns, strict=True)
    }
