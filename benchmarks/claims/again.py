"""Claims that are measured again, by the commands that the ledger has for them."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.claims.conclusion import Results
from benchmarks.claims.finding import Finding
from benchmarks.claims.ledger import ROOT, Claim, Ledger, Measurement
from benchmarks.claims.stored import findings, read_results


class Answer(NamedTuple):
    """What was found for each condition of a claim, nothing where nothing was measured; then
    there is a ``reason``.
    """

    claim: Claim
    findings: Sequence[Finding] = ()
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


def ask_tool(command: str) -> Any:
    """The document that a ``command`` of Python prints last. Raises ValueError where it fails."""
    print(command, file=sys.stderr)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"it ended with status {done.returncode} and no document: {command}")
    return json.loads(done.stdout.splitlines()[-1])


def ask(
    ledger: Ledger,
    claims: Sequence[Claim],
    measure: Callable[[str], Results],
    read: Callable[[str], Any] = ask_tool,
) -> list[Answer]:
    """Every claim's answer. ``measure`` and ``read`` are called once for each command, however
    many claims it settles; where they raise ValueError those are not measured.
    """
    failures: dict[str, str] = {}
    measured = _each(
        measure,
        ledger.measurements,
        [each.measurement for claim in claims for each in claim.holds_if],
        failures,
    )
    documents = _each(
        read,
        ledger.documents,
        [each.document for claim in claims for each in claim.reads],
        failures,
    )
    return [_answer(ledger, claim, measured, documents, failures) for claim in claims]


def _each(
    run: Callable[[str], Any],
    sources: Mapping[str, Measurement],
    names: Sequence[str],
    failures: dict[str, str],
) -> dict[str, Any]:
    """By name; a command that fails is in ``failures`` instead, with its reason."""
    found = {}
    for name in dict.fromkeys(names):
        command = sources[name].command
        try:
            found[name] = run(command)
        except ValueError as error:
            failures[command] = str(error)
    return found


def _answer(
    ledger: Ledger,
    claim: Claim,
    measured: Mapping[str, Results],
    documents: Mapping[str, Any],
    failures: Mapping[str, str],
) -> Answer:
    if not claim.conditions:
        return Answer(claim, reason=claim.why)
    commands = [ledger.source(each).command for each in claim.conditions]
    if reasons := [failures[command] for command in commands if command in failures]:
        return Answer(claim, reason=reasons[0])
    try:
        return Answer(claim, findings(claim, measured, documents))
    except ValueError as error:
        failed = (
            failure.reason
            for each in claim.holds_if
            for result in measured[each.measurement].values()
            for failure in result.failures
        )
        return Answer(claim, reason=next(failed, str(error)))
