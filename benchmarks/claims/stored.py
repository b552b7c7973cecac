"""Results as files, and what the published ones say of claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.claims.conclusion import Results, settle
from benchmarks.claims.document import read_document, settle_reading
from benchmarks.claims.finding import Finding
from benchmarks.claims.ledger import ROOT, Claim, Ledger
from harness.experiment.experiment_file import PartsResult
from harness.experiment.result import ExperimentResult
from harness.files import StoreError
from harness.report.kinds import read_result

PUBLISHED = ROOT / "results" / "published"


def read_results(path: Path) -> Results:
    """What gcbench compare --json has written: a comparison, or the parts of an experiment's file.

    Raises StoreError.
    """
    result = read_result(path)
    if isinstance(result, PartsResult):
        return {part.title: part.result for part in result.parts}
    if not isinstance(result, ExperimentResult):
        raise StoreError(f"{path} is no comparison; name what gcbench compare --json has written")
    return {"": result}


def findings(
    claim: Claim, measured: Mapping[str, Results], documents: Mapping[str, Any]
) -> list[Finding]:
    """What was found for each of its conditions, by the names of measurements and documents.

    Raises ValueError where one does not have the figure.
    """
    return [
        *(settle(each, measured[each.measurement]) for each in claim.holds_if),
        *(settle_reading(each, documents[each.document]) for each in claim.reads),
    ]


def stored_findings(ledger: Ledger, claims: Sequence[Claim]) -> dict[str, list[Finding]]:
    """What the published results say of ``claims``, by id; a claim without a result is left out.

    Raises StoreError where a result cannot be read, ValueError where it does not have the figure.
    """
    with_results = [claim for claim in claims if ledger.has_results(claim)]
    measured = {
        name: read_results(PUBLISHED / ledger.measurements[name].result)
        for name in {each.measurement for claim in with_results for each in claim.holds_if}
    }
    documents = {
        name: read_document(PUBLISHED / ledger.documents[name].result)
        for name in {each.document for claim in with_results for each in claim.reads}
    }
    found = {}
    for claim in with_results:
        try:
            found[claim.id] = findings(claim, measured, documents)
        except ValueError as error:
            raise ValueError(f"claim {claim.id!r}, its stored result: {error}") from None
    return found
