"""Whether cells did the same work: different work has no ratio."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.axes import Cell
from harness.experiment.first_difference import follow_one_script, outputs_difference
from harness.experiment.grid import groups
from harness.experiment.outcomes import Trials
from harness.experiment.plan import Plan
from harness.trial.spec import TrialResult


class DifferingCells(NamedTuple):
    """``cells`` have no ratio, and a group whose baseline is among them has none at all.

    ``sentences``: why. ``apart``: which groups of one workload did other work than each other.
    """

    cells: set[Cell]
    sentences: list[str]
    apart: list[str]


class _Difference(NamedTuple):
    """What a cell should have agreed in with another, or with itself, and did not."""

    what: str
    other: Cell


def cells_of_other_work(plan: Plan, trials: Trials, ids: Mapping[Cell, str]) -> DifferingCells:
    """The cells whose trials did other work than those of their group's baseline.

    Texts are held against the first that the group has of the same engine.
    """
    cells: set[Cell] = set()
    sentences: list[str] = []
    apart: list[str] = []
    first_of: dict[str, tuple[Cell, TrialResult]] = {}
    for group, index in enumerate(plan.baselines):
        baseline = plan.cells[index]
        if not trials.timings[baseline]:
            continue
        reference = next(iter(trials.timings[baseline].values()))
        other, expected = first_of.setdefault(baseline.workload, (baseline, reference))
        if what := difference(reference, expected):
            apart.append(
                f"{ids[baseline]} produced other {what} than {ids[other]}, though both replay "
                f"{baseline.workload}: their figures do not belong side by side."
            )
        found = _in_group(plan, trials, group)
        cells |= found.keys()
        sentences += [
            f"{words}; different work has no ratio."
            for words in _words(found, baseline, len(_members(plan, trials, group)) - 1, ids)
        ]
    return DifferingCells(cells, sentences, apart)


def difference(result: TrialResult, expected: TrialResult) -> str:
    """What two trials of a workload should have agreed in and do not, or ""."""
    if follow_one_script(result, expected) and result.tokens_sha256 != expected.tokens_sha256:
        return "tokens"
    if result.lengths_sha256 != expected.lengths_sha256:
        return "numbers of tokens"
    if result.finish_sha256 != expected.finish_sha256:
        return "finish reasons"
    texts = {each.text_sha256 for each in (result, expected)}
    causes = {(each.tokens_sha256, text_rules(each.cell)) for each in (result, expected)}
    return "text" if len(texts) > len(causes) and "" not in texts else ""


def text_rules(cell: Cell) -> tuple[str, str]:
    """What makes a text of tokens: engines begin and end one in ways of their own."""
    return cell.tokenizer, cell.engine


def _members(plan: Plan, trials: Trials, group: int) -> list[Cell]:
    """The cells of a group that have results, its baseline first."""
    baseline = plan.cells[plan.baselines[group]]
    members = [cell for cell, of in zip(plan.cells, groups(plan.cells), strict=True) if of == group]
    there = [cell for cell in members if trials.timings[cell]]
    return sorted(there, key=lambda cell: cell != baseline)


def _in_group(plan: Plan, trials: Trials, group: int) -> dict[Cell, _Difference]:
    found: dict[Cell, _Difference] = {}
    first: tuple[Cell, TrialResult] | None = None
    first_text: dict[tuple[str, str], tuple[Cell, TrialResult]] = {}
    members = _members(plan, trials, group)
    for cell in members:
        for result in trials.timings[cell].values():
            other, expected = first = first or (cell, result)
            if not (what := difference(result, expected)) and result.text_sha256:
                made_alike = (result.tokens_sha256, cell.engine)
                other, expected = first_text.setdefault(made_alike, (cell, result))
                what = difference(result, expected)
            if what:
                found.setdefault(cell, _Difference(what, other))
    return found | _other_outputs(trials, [cell for cell in members if cell not in found])


def _other_outputs(trials: Trials, cells: Sequence[Cell]) -> dict[Cell, _Difference]:
    """Those whose steps gave requests something else than the first one's did."""
    given = [(cell, result) for cell in cells if (result := trials.counted_in("outputs", cell))]
    found: dict[Cell, _Difference] = {}
    for cell, result in given[1:]:
        other, expected = given[0]
        if what := outputs_difference(result, expected):
            found[cell] = _Difference(what, other)
    return found


def _words(
    found: Mapping[Cell, _Difference], baseline: Cell, candidates: int, ids: Mapping[Cell, str]
) -> list[str]:
    name = f"{ids[baseline]}, the baseline,"
    if baseline in found:
        return [f"{name} did not produce the same {found[baseline].what} in all its trials"]
    if len(found) == candidates > 1 and len(set(found.values())) == 1:
        return [
            f"{name} produced other {next(iter(found.values())).what} than each of the "
            f"{candidates} cells that would be compared with it"
        ]
    return [
        f"{ids[cell]} did not produce the same {what} in all its trials"
        if other == cell
        else f"{ids[cell]} produced other {what} than {ids[other]}"
        for cell, (what, other) in found.items()
    ]
