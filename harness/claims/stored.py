"""What stored results say of claims, and the file that carries it into an installed package."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.claims.conclusion import Finding, Results, settle
from harness.claims.ledger import SHIPPED, Ledger
from harness.experiment.experiment_file import PartsResult
from harness.experiment.result import ExperimentResult
from harness.files import decode_versioned
from harness.result.result import RESULT_SCHEMA

_RULINGS = SHIPPED.with_name("rulings.json")

RULINGS_SCHEMA = "gcbench.rulings/1"


class Rulings(msgspec.Struct, frozen=True, kw_only=True):
    """What the stored result of each claim that has one comes to, by the claim's id."""

    rulings: dict[str, Finding]
    schema: str = RULINGS_SCHEMA


class Recorded(NamedTuple):
    """What `gcbench compare --json` has written: its command, and what that measured."""

    command: str
    results: Results


def read_recorded(path: Path) -> Recorded:
    """A comparison, or the parts of an experiment's file. Raises StoreError."""
    result: Any = decode_versioned(path, ExperimentResult | PartsResult, RESULT_SCHEMA)  # type: ignore[arg-type]
    if isinstance(result, ExperimentResult):
        return Recorded(result.command, {"": result})
    command = result.parts[0].result.command if result.parts else ""
    return Recorded(command, {part.title: part.result for part in result.parts})


def rule(ledger: Ledger, folder: Path) -> Rulings:
    """What the results in ``folder`` say of the claims that have one.

    Raises StoreError where one cannot be read, ValueError where it does not have the figure.
    """
    recorded = {
        name: read_recorded(folder / measurement.result).results
        for name, measurement in ledger.measurements.items()
        if measurement.result
    }
    rulings = {}
    for claim in ledger.claims:
        if claim.holds_if is not None and claim.measurement in recorded:
            try:
                rulings[claim.id] = settle(claim.holds_if, recorded[claim.measurement])
            except ValueError as error:
                raise ValueError(f"claim {claim.id!r}, its stored result: {error}") from None
    return Rulings(rulings=rulings)


def shipped_rulings() -> Rulings:
    """Those of the ledger that comes with the package. Raises StoreError."""
    return decode_versioned(_RULINGS, Rulings, RULINGS_SCHEMA)
