"""Claims as files: who says what, what would tell, and where it was told."""

from collections import Counter
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.claims.conclusion import Conclusion
from benchmarks.claims.document import Reading
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
    """What tells: a ``command`` that is run at the top of the repository, and the ``result`` that
    it has given, a file in results/published.
    """

    command: str
    result: str = ""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row: what somebody ``says``, and the figures ``published`` for it, as they stand.

    It holds if all of ``holds_if`` and ``reads`` do: figures of measurements and of documents. A
    claim on which no result can be had here is ``declared`` so. ``why``: the sentence that
    explains what came out.
    """

    id: str
    thread: str
    says: str
    published: str
    why: str
    holds_if: list[Conclusion] = []
    reads: list[Reading] = []
    declared: Declared | None = None

    @property
    def conditions(self) -> list[Conclusion | Reading]:
        """All that have to hold, in the order in which their findings stand."""
        return [*self.holds_if, *self.reads]


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``threads`` in the order in which they are shown, with their ``claims``; ``measurements``
    are commands of gcbench compare, ``documents`` those of tools that print one JSON document.
    """

    threads: list[Thread]
    claims: list[Claim]
    measurements: dict[str, Measurement] = {}
    documents: dict[str, Measurement] = {}
    name: str = ""

    def source(self, condition: Conclusion | Reading) -> Measurement:
        """Where a condition's figure comes from."""
        if isinstance(condition, Reading):
            return self.documents[condition.document]
        return self.measurements[condition.measurement]

    def has_results(self, claim: Claim) -> bool:
        """Whether each of its conditions has a stored result to be read in."""
        found = [bool(self.source(each).result) for each in claim.conditions]
        return bool(found) and all(found)


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
    for wanted in claim.holds_if:
        if wanted.measurement not in ledger.measurements:
            yield f"no measurement {wanted.measurement!r}"
        yield from _mistakes_in(wanted)
    for reading in claim.reads:
        if reading.document not in ledger.documents:
            yield f"no document {reading.document!r}"
        if reading.mistake:
            yield reading.mistake
    if not claim.conditions and not claim.declared:
        yield "give holds_if or reads, or declare why not"
    elif claim.declared and ledger.has_results(claim):
        yield f"it has a result, so it cannot be declared {claim.declared!r}; leave one out"


def _mistakes_in(wanted: Conclusion) -> Iterator[str]:
    for metric in filter(None, (wanted.metric, wanted.per)):
        if metric not in METRICS:
            yield f"no metric {metric!r}"
    for axis in (*wanted.cell, *(wanted.against or {})):
        if axis not in AXES:
            yield f"no axis {axis!r}"
    if wanted.verdict is None and wanted.mistake:
        yield f"{wanted.mistake}, or a verdict"
    if wanted.verdict is not None and wanted.limits(is_ratio=True) != (-inf, inf):
        yield "give a verdict or bounds, not both"
    if wanted.verdict is not None and (wanted.against is None or wanted.per):
        yield "a verdict is on a metric of one cell against another"
