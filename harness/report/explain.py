"""What `gcbench explain` shows, whatever it was asked: the answer in sentences, then tables."""

from functools import partial

from harness import format as fmt
from harness.explain.result import ExplainResult, FunctionsBody, GrowthBody, SitesBody
from harness.explain.version_cost import version_cost
from harness.render.report import Picture, Report, known, remarks
from harness.render.table import PlainTable
from harness.report.functions import functions_answer, functions_tables
from harness.report.growth import growth_answer, growth_tables
from harness.report.growth_image import growth_image
from harness.report.header import INCOMPLETE, machine_words
from harness.report.known_releases import known_releases
from harness.report.sites import sites_answer, sites_tables
from harness.report.version_costs import counted_words


def describe_explain(result: ExplainResult) -> Report:
    """Whatever it was asked: the answer in sentences, then tables."""
    answer, *more = _answer(result)
    growth = result.body if isinstance(result.body, GrowthBody) else None
    return Report(
        heading="gcbench explain",
        name=result.name,
        answer=answer,
        attention="" if result.is_complete else f"{fmt.capitalised(INCOMPLETE)}.",
        tables=[table for table in _tables(result) if table.groups],
        sentences=more,
        lists=remarks(result),
        facts=_facts(result),
        command=result.command,
        pictures=[
            Picture(
                "Release by release",
                "What a step takes in each version, and with which one the functions became "
                "dearer that changed most.",
                partial(growth_image, result, growth),
            )
        ]
        if growth is not None
        else [],
    )


def _answer(result: ExplainResult) -> list[str]:
    """The answer, a sentence each."""
    match result.body:
        case FunctionsBody() as functions:
            return functions_answer(functions)
        case GrowthBody() as growth:
            return growth_answer(growth)
        case SitesBody() as sites:
            return sites_answer(sites)


def _tables(result: ExplainResult) -> list[PlainTable]:
    """Functions and lines."""
    match result.body:
        case FunctionsBody() as functions:
            return functions_tables(functions, result.rows)
        case GrowthBody() as growth:
            return growth_tables(growth, result.rows, known_releases(str(result.axes["engine"])))
        case SitesBody() as sites:
            return sites_tables(sites, result.rows)


def _facts(result: ExplainResult) -> list[tuple[str, str]]:
    """What was counted, on what."""
    match result.body:
        case FunctionsBody(side=side, against=against):
            versions = " against ".join(each.label for each in (side, against) if each)
            counted = counted_words(version_cost(side))
        case GrowthBody(versions=[first, *others]):
            versions = " to ".join(each.label for each in (first, *others[-1:]))
            counted = counted_words(first)
        case SitesBody(found=found, num_steps=num_steps) as sites:
            versions = sites.label
            counted = (
                f"{fmt.count(found.young)} young objects in {sum(found.collections)} collections, "
                f"{fmt.count(num_steps)} steps"
            )
    lines = [
        ("versions", versions),
        ("machine", machine_words(result.machine)),
        ("workload", result.workloads[0].name),
        ("cell", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
        ("counted", counted),
    ]
    return known(lines)
