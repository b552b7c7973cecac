"""Claims as files: who says what, what would tell, and where it was told."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from engines.nearest import nearest
from harness.axes import AXES
from harness.claims.conclusion import Conclusion
from harness.metrics import METRICS
from workloads.recipe.spec import read_toml

SHIPPED = Path(__file__).parent / "claims.toml"

Declared = Literal["needs a GPU", "not testable here"]


class Thread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where claims were made. ``id``: what claims call it; ``answer``: what came of them."""

    id: str
    title: str
    url: str = ""
    answer: str = ""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells: a ``command`` of gcbench compare, and the ``result`` that it has given.

    The file lies in results/published; that of another ledger beside the ledger.
    """

    command: str
    result: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: what somebody ``says``, and the figures ``published`` for it, as they stand.

    ``measurement``: the name of the one that tells, by ``holds_if``. A claim on which no result
    can be had here is ``declared`` so, and then may have neither. ``why``: the sentence that
    explains what came out.
    """

    id: str
    thread: str
    says: str
    published: str
    why: str
    measurement: str = ""
    holds_if: Conclusion | None = None
    declared: Declared | None = None


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``threads`` in the order in which they are shown, with their ``claims``."""

    threads: list[Thread]
    claims: list[Claim]
    measurements: dict[str, Measurement] = {}
    name: str = ""


def load(path: Path = SHIPPED) -> Ledger:
    """A ledger; the four threads that gcbench grew out of, unless another is named.

    Raises ValueError with one sentence that names the file and the place in it.
    """
    ledger = read_toml(path, Ledger, "claim")
    if why := _mistake(ledger):
        raise ValueError(f"{path}: {why}")
    return ledger


def _mistake(ledger: Ledger) -> str:
    """What the types do not say, in words, or ""."""
    ids = [claim.id for claim in ledger.claims]
    if twice := next((name for name in ids if ids.count(name) > 1), ""):
        return f"two claims are called {twice!r}; give each an id of its own"
    threads = [thread.id for thread in ledger.threads]
    for claim in ledger.claims:
        if why := _mistake_of(claim, ledger.measurements, threads):
            return f"claim {claim.id!r}: {why}"
    return ""


def _mistake_of(
    claim: Claim, measurements: Mapping[str, Measurement], threads: Collection[str]
) -> str:
    if claim.thread not in threads:
        return (
            f"no thread {claim.thread!r}; did you mean {', '.join(nearest(claim.thread, threads))}?"
        )
    if bool(claim.measurement) != (claim.holds_if is not None):
        return "a measurement and holds_if go together; give both or neither"
    if claim.holds_if is None:
        return "" if claim.declared else "give a measurement and holds_if, or declare why not"
    measurement = measurements.get(claim.measurement)
    if measurement is None:
        near = ", ".join(nearest(claim.measurement, measurements))
        return f"no measurement {claim.measurement!r}; did you mean {near}?"
    if measurement.result and claim.declared:
        return f"it has a result, so it cannot be declared {claim.declared!r}; leave one out"
    return _unknown_name(claim.holds_if) or _no_condition(claim.holds_if)


def _unknown_name(wanted: Conclusion) -> str:
    for metric in filter(None, (wanted.metric, wanted.per)):
        if metric not in METRICS:
            return f"no metric {metric!r}; did you mean {', '.join(nearest(metric, METRICS))}?"
    for axis in (*wanted.cell, *(wanted.against or {})):
        if axis not in AXES:
            return f"no axis {axis!r}; did you mean {', '.join(nearest(axis, AXES))}?"
    return ""


def _no_condition(wanted: Conclusion) -> str:
    least, most = wanted.at_least, wanted.at_most
    if (least is None and most is None) == (wanted.verdict is None):
        return "holds_if has at_least, at_most or both, or else a verdict"
    if wanted.verdict is not None and (wanted.against is None or wanted.per):
        return "a verdict is on a metric of one cell against another"
    if least is not None and most is not None and least > most:
        return f"at_least {least} is more than at_most {most}"
    return ""
