"""Claims that are measured again, by the commands that the ledger has for them."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.claims.conclusion import Finding, Results, settle
from benchmarks.claims.ledger import ROOT, Claim, Ledger
from benchmarks.claims.stored import read_results


class Answer(NamedTuple):
    """What was found of a claim, None where nothing was measured; then there is a ``reason``."""

    claim: Claim
    finding: Finding | None
    reason: str = ""


def compare(command: str, more: Sequence[str] = ()) -> Results:
    """What a ``command`` of gcbench compare measures in this checkout, with ``more`` flags.

    Raises ValueError where it does not run to its end; the command has then said why.
    """
    print(shlex.join([*shlex.split(command), *more]), file=sys.stderr)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        words = [*shlex.split(command)[1:], *more, "--json", str(path)]
        done = subprocess.run(
            [sys.executable, "-m", "harness", *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        results = read_results(path) if path.exists() else {}
    if not results or not all(result.is_complete for result in results.values()):
        raise ValueError(
            f"gcbench compare ended with status {done.returncode} before all was measured"
        )
    return results


def ask(ledger: Ledger, claims: Sequence[Claim], measure: Callable[[str], Results]) -> list[Answer]:
    """Every claim's answer. ``measure`` is called once for each command, however many claims it
    settles; where it raises ValueError they are not measured.
    """
    by_measurement: dict[str, list[Claim]] = {}
    for claim in claims:
        by_measurement.setdefault(claim.measurement, []).append(claim)
    answers: list[Answer] = []
    for name, asked in by_measurement.items():
        try:
            results = measure(ledger.measurements[name].command) if name else {}
        except ValueError as error:
            answers += [Answer(claim, None, str(error)) for claim in asked]
        else:
            answers += [_answer(claim, results) for claim in asked]
    return answers


def _answer(claim: Claim, results: Results) -> Answer:
    if claim.holds_if is None:
        return Answer(claim, None, claim.why)
    try:
        return Answer(claim, settle(claim.holds_if, results))
    except ValueError as error:
        failures = (each for result in results.values() for each in result.failures)
        reason = next((failure.reason for failure in failures), str(error))
        return Answer(claim, None, reason)
