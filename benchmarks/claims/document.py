"""Figures that no comparison has: of the JSON document that another tool of the repository prints.

A number there is exact, or the median that the tool says it is; a list of numbers has one for each
round.
"""

from pathlib import Path
from typing import Any

import msgspec

from benchmarks.claims.bounds import Bounds
from benchmarks.claims.finding import Finding, judged
from harness.files import StoreError
from harness.statistics.paired_ratio import paired_ratio


class Reading(Bounds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``figure`` of a ``document``, by its keys, divided by another one where ``against`` is
    given, and what it has to be; ``unit``: what stands behind it.
    """

    document: str
    figure: list[str]
    against: list[str] | None = None
    unit: str = ""


def read_document(path: Path) -> Any:
    """What a tool has printed. Raises StoreError."""
    try:
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{path}: {error}") from None


def settle_reading(reading: Reading, document: Any) -> Finding:
    """What the ``document`` says. Raises ValueError where it has no such figure."""
    values = _look_up(reading.figure, document)
    limits = reading.limits(is_ratio=reading.against is not None)
    others = [1.0] * len(values)
    if reading.against is not None:
        others = _look_up(reading.against, document)
    if len(values) == len(others) == 1:
        value = values[0] / others[0]
        return judged(limits, value, (value, value))
    ratio = paired_ratio(others, values)
    return judged(limits, ratio.ratio, ratio.ci95)


def _look_up(keys: list[str], document: Any) -> list[float]:
    found = document
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            raise ValueError(f"the document has no figure {' · '.join(keys)}")
        found = found[key]
    return [float(each) for each in (found if isinstance(found, list) else [found])]
