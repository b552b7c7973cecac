"""SARIF for code review: which functions have become dearer, and where they are."""

from fractions import Fraction
from typing import Any, NamedTuple
from urllib.parse import quote

from harness.explain.changes import any_stage
from harness.explain.result import Costs, FunctionChange, FunctionPlace, FunctionsBody, Side
from harness.files import indented
from harness.format import count
from harness.trial.step_costs import StepCosts

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 50

DEARER_BYTECODES = "dearer-bytecodes"
MORE_TRACKED_OBJECTS = "more-tracked-objects"
DEAREST_FUNCTIONS = "dearest-functions"

_RULES = {
    DEARER_BYTECODES: "The function, with unchanged code that it calls, runs more bytecodes per "
    "request and step than before.",
    MORE_TRACKED_OBJECTS: "The function, with unchanged code that it calls, makes more objects "
    "that the garbage collector tracks, per request and step, than before.",
    DEAREST_FUNCTIONS: "The function is among those that run the most bytecodes.",
}
_SOURCE_ROOT = "SRCROOT"


class _Figures(NamedTuple):
    """Per request and step, exact: a difference of nothing is nothing."""

    bytecodes: Fraction
    objects: Fraction


def sarif_log(body: FunctionsBody) -> bytes:
    """A SARIF 2.1.0 log: a warning for each function that is dearer than before.

    New functions are among them. At most `MOST_RESULTS` are there, the largest part of a step's
    bytecodes or tracked objects first. Of one version alone: a note for each of its dearest
    functions. Files are relative to the folder that a package is imported from; code that was made
    from a string, such as a data class's ``__init__``, is in none and has its name alone.
    The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html.
    """
    if body.against is None:
        results = _dearest(body.side)
    else:
        results = _dearer(body.changes, body.against, body.side)
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    source_root = {"description": {"text": "The folder that the package is imported from."}}
    run = {
        "tool": {"driver": {"name": "gcbench", "rules": rules}},
        "originalUriBaseIds": {_SOURCE_ROOT: source_root},
        "results": results,
    }
    return indented({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _dearer(changes: list[FunctionChange], before: Side, after: Side) -> list[dict[str, Any]]:
    whole = _per_row(_total(after.costs), after.costs)
    found: list[tuple[Fraction, dict[str, Any]]] = []
    for change in changes:
        now = _per_row(change.costs_after, after.costs)
        then = _per_row(change.costs_before, before.costs)
        more = _Figures(now.bytecodes - then.bytecodes, now.objects - then.objects)
        if not change.after or max(more) <= 0:
            continue
        shares = [part / of if of else Fraction() for part, of in zip(more, whole, strict=True)]
        rule = DEARER_BYTECODES if shares[0] >= shares[1] else MORE_TRACKED_OBJECTS
        text = f"{_sentence(change.after[0], more, '+')} since {before.label}."
        if change.kind == "new":
            text += " The function is new."
        found.append((max(shares), _result(rule, "warning", text, change.after[0])))
    found.sort(key=lambda each: -each[0])
    return [each for _, each in found[:MOST_RESULTS]]


def _dearest(side: Side) -> list[dict[str, Any]]:
    ran = [each for each in any_stage(side.costs.functions) if each.bytecodes]
    results = []
    for each in sorted(ran, key=lambda each: -each.bytecodes)[:MOST_RESULTS]:
        where = FunctionPlace.of(each)
        own = Costs.of(each)
        text = f"{_sentence(where, _per_row(own, side.costs))} in {side.label}."
        results.append(_result(DEAREST_FUNCTIONS, "note", text, where))
    return results


def _total(costs: StepCosts) -> Costs:
    return Costs(
        bytecodes=sum(each.bytecodes for each in costs.functions),
        allocations=sum(each.allocations for each in costs.functions),
    )


def _per_row(own: Costs, of: StepCosts) -> _Figures:
    return _Figures(Fraction(own.bytecodes, of.num_rows), Fraction(own.allocations, of.num_rows))


def _sentence(where: FunctionPlace, figures: _Figures, plus: str = "") -> str:
    said = [
        _figure(figure, what, plus)
        for figure, what in zip(figures, ("bytecode", "tracked object"), strict=True)
        if figure
    ]
    return f"{where.name}: {' and '.join(said)} per request and step"


def _figure(value: Fraction, what: str, plus: str) -> str:
    amount = count(abs(float(value)))
    return f"{plus if value > 0 else '-'}{amount} {what}{'' if amount == '1' else 's'}"


def _result(rule: str, level: str, text: str, where: FunctionPlace) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": where.name, "kind": "function"}]
    }
    if not where.file.startswith("<"):
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(where.file), "uriBaseId": _SOURCE_ROOT},
            "region": {"startLine": max(where.line, 1)},
        }
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [location]}
