"""Claims as files: who says what, what would tell, and where it was told."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.claims.conclusion import Conclusion
from harness.axes import AXES
from harness.metrics import METRICS
from workloads.recipe.spec import read_toml

CLAIMS = Path(__file__).with_name("claims.toml")
ROOT = Path(__file__).parents[2]
"""Of the checkout."""

Declared = Literal["needs a GPU", "not testable here"]


class Thread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where claims were made. ``id``: what claims call it; ``answer``: what came of them."""

    id: str
    title: str
    url: str = ""
    answer: str = ""


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells: a ``command`` of gcbench compare, and the ``result`` that it has given, a file in
    results/published.
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


def load(path: Path = CLAIMS) -> Ledger:
    """The ledger. Raises ValueError with one sentence that names the file and the place in it."""
    ledger = read_toml(path, Ledger, "claim")
    if why := next(_mistakes(ledger), ""):
        raise ValueError(f"{path}: {why}")
    return ledger


def _mistakes(ledger: Ledger) -> Iterator[str]:
    """What the types do not say, a sentence each."""
    count = Counter(claim.id for claim in ledger.claims)
    yield from (f"two claims are called {name!r}" for name in count if count[name] > 1)
    for claim in ledger.claims:
        yield from (f"claim {claim.id!r}: {why}" for why in _mistakes_of(claim, ledger))


def _mistakes_of(claim: Claim, ledger: Ledger) -> Iterator[str]:
    if claim.thread not in {thread.id for thread in ledger.threads}:
        yield f"no thread {claim.thread!r}"
    if claim.measurement and claim.measurement not in ledger.measurements:
        yield f"no measurement {claim.measurement!r}"
    elif bool(claim.measurement) != (claim.holds_if is not None):
        yield "a measurement and holds_if go together; give both or neither"
    elif claim.holds_if is None and not claim.declared:
        yield "give a measurement and holds_if, or declare why not"
    elif claim.declared and claim.measurement and ledger.measurements[claim.measurement].result:
        yield f"it has a result, so it cannot be declared {claim.declared!r}; leave one out"
    if claim.holds_if is not None:
        yield from _mistakes_in(claim.holds_if)


def _mistakes_in(wanted: Conclusion) -> Iterator[str]:
    for metric in filter(None, (wanted.metric, wanted.per)):
        if metric not in METRICS:
            yield f"no metric {metric!r}"
    for axis in (*wanted.cell, *(wanted.against or {})):
        if axis not in AXES:
            yield f"no axis {axis!r}"
    has_bound = wanted.at_least is not None or wanted.at_most is not None
    if has_bound == (wanted.verdict is not None):
        yield "holds_if has at_least, at_most or both, or else a verdict"
    if wanted.verdict is not None and (wanted.against is None or wanted.per):
        yield "a verdict is on a metric of one cell against another"
