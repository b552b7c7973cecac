"""What `advise --predict` shows: whether the collector runs as its rules say, then both counts."""

from collections.abc import Iterator

from harness import format as fmt
from harness.explain.cadence import ByGeneration, Cadence, CadenceResult
from harness.render.report import Report, remarks
from harness.render.table import PlainTable, Row
from harness.report.header import machine_words


def describe_cadence(result: CadenceResult) -> Report:
    """All that is known of it."""
    answer, *more = _answer(result) if result.cadences else ["✗ Nothing was counted."]
    return Report(
        heading="gcbench advise --predict",
        name=result.name,
        answer=answer,
        tables=[_table(result)] if result.cadences else [],
        sentences=more,
        lists=remarks(result),
        facts=_header(result),
        command=result.command,
    )


def _header(result: CadenceResult) -> list[tuple[str, str]]:
    """What was looked at, on what."""
    return [
        ("machine", machine_words(result.machine)),
        ("workload", result.workloads[0].name),
        ("cell", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
    ]


def _answer(result: CadenceResult) -> list[str]:
    """The answer, a sentence each."""
    apart = [each for each in result.cadences if not each.is_near]
    if apart:
        return list(_warnings(apart))
    if not any(sum(each.predicted) + sum(each.observed) for each in result.cadences):
        return [
            "? The collector neither ran nor was predicted to, which tells nothing; give more "
            "requests, or longer outputs."
        ]
    return [
        "The collector runs when CPython's rules say: predicted and observed collections agree "
        "within 3 % or one."
    ]


def _warnings(apart: list[Cadence]) -> Iterator[str]:
    for each in apart:
        yield (
            f"▲ {each.label}: {_counts(each.predicted)} collections were predicted, "
            f"{_counts(each.observed)} observed."
        )
    yield (
        "Something else decides there: objects that live and die within one call into C, garbage "
        "in cycles, or a collector that is called by hand."
    )


def _table(result: CadenceResult) -> PlainTable:
    """Policies, in the order in which they were asked for."""
    return PlainTable(
        "Collections of generations 0/1/2",
        ("cell", "thresholds", "predicted", "observed", "steps from one\nto the next"),
        [[_row(each) for each in result.cadences]],
        "predicted: from one trial that followed the count of young objects; observed: in a trial "
        "of its own, not traced",
    )


def _row(each: Cadence) -> Row:
    times = sum(each.observed)
    return (
        each.label,
        _counts(each.thresholds),
        _counts(each.predicted),
        _counts(each.observed),
        f"{each.num_steps / times:.3g}" if times else "",
    )


def _counts(numbers: ByGeneration) -> str:
    return "/".join(fmt.count(each) for each in numbers)
