"""What versions take per request and step: a sentence on two of them, and the stages of a step."""

from collections.abc import Iterable, Sequence

from harness import format as fmt
from harness.explain.result import RequestStageCost, VersionCost
from harness.render.table import PlainTable, Row
from harness.report.function_words import cost_words, signed


def counted_words(first: VersionCost) -> str:
    """Over which steps a version was counted."""
    which = f"steps, one in {first.every}" if first.every else "steps of a full batch"
    return f"{first.num_steps} {which}, {fmt.count(first.num_rows)} outputs"


def sampling_sentences(versions: Sequence[VersionCost]) -> list[str]:
    """How sure figures of sampled steps are; nothing where all steps of a kind were counted."""
    if not (every := versions[0].every):
        return []
    known = [(each.half_width, each.label) for each in versions if each.half_width is not None]
    if len(versions) > 2:
        known = [max(known)] if known else []
    widths = [
        f"±{fmt.percent(width)}" + f" for {label}" * (len(versions) > 1) for width, label in known
    ]
    at_least = " or better" if len(versions) > 2 else ""
    sure = f"; bytecodes are right within {joined_texts(widths)}{at_least} (95 %)" if widths else ""
    return [f"One step in {every} was traced{sure}."]


def difference_sentence(before: VersionCost, after: VersionCost) -> str:
    """What a version takes more or fewer than another."""
    than = "as" if before.bytecodes == after.bytecodes else "than"
    return (
        f"{after.label} executes {_more(before.bytecodes, after.bytecodes)} bytecodes per request "
        f"and step {than} {before.label} {_both(before.bytecodes, after.bytecodes)}, and makes "
        f"{_more(before.objects, after.objects)} tracked objects "
        f"{_both(before.objects, after.objects)}."
    )


def _more(before: float, after: float) -> str:
    more = after - before
    return f"{cost_words(abs(more))} {'more' if more > 0 else 'fewer'}" if more else "as many"


def _both(before: float, after: float) -> str:
    if after == before:
        return f"({cost_words(after)})"
    share = f", {fmt.percent(after / before - 1, signed=True)}" if before else ""
    return f"({cost_words(after)} against {cost_words(before)}{share})"


def stages_table(versions: Sequence[VersionCost]) -> PlainTable:
    """The stages of a step, those of one version or of two side by side."""
    names = dict.fromkeys(stage for each in versions for stage in each.stages)
    costs = {
        name: [each.stages.get(name, RequestStageCost()) for each in versions] for name in names
    }
    order = sorted(costs, key=lambda name: -costs[name][-1].bytecodes)
    labels = [heading(each.label) for each in versions]
    if len(versions) == 1:
        columns: Row = ("stage", "bytecodes", "objects")
    else:
        columns = (
            "stage",
            *(f"bytecodes\n{label}" for label in labels),
            "\nchange",
            *(f"objects\n{label}" for label in labels),
            "\nchange",
        )
    return PlainTable(
        "By stage, per request and step",
        columns,
        [[_stage_row(name, costs[name]) for name in order], [_stage_row("all", versions)]],
        "objects: tracked objects made, gross; what is freed in the same step counts too",
    )


def heading(label: str) -> str:
    """A version's label as a column's head; of a commit's the name above the hash."""
    return label.replace(" (", "\n(")


def _stage_row(name: str, costs: Sequence[RequestStageCost | VersionCost]) -> Row:
    cells = [name]
    for figures in ([each.bytecodes for each in costs], [each.objects for each in costs]):
        cells += map(cost_words, figures)
        if len(figures) == 2:
            cells.append(signed(figures[1] - figures[0]))
    return tuple(cells)


def joined_texts(texts: Iterable[str]) -> str:
    """Texts as a list in a sentence."""
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last
