"""Results as files, and what the published ones say of claims."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.claims.conclusion import Finding, Results, settle
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


def stored_findings(ledger: Ledger, claims: Sequence[Claim]) -> dict[str, Finding]:
    """What the published results say of ``claims``, by id; a claim without a result is left out.

    Raises StoreError where a result cannot be read, ValueError where it does not have the figure.
    """
    results: dict[str, Results] = {}
    found = {}
    for claim in claims:
        if claim.holds_if is None or not (name := ledger.measurements[claim.measurement].result):
            continue
        if name not in results:
            results[name] = read_results(PUBLISHED / name)
        try:
            found[claim.id] = settle(claim.holds_if, results[name])
        except ValueError as error:
            raise ValueError(f"claim {claim.id!r}, its stored result: {error}") from None
    return found
