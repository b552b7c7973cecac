"""What `gcbench explain` shows, whatever it was asked: the answer in sentences, then tables."""

from harness import format as fmt
from harness.explain.result import ExplainResult, FunctionsBody, GrowthBody, SitesBody
from harness.explain.version_cost import version_cost
from harness.report.functions import functions_answer, functions_tables
from harness.report.growth import growth_answer, growth_tables
from harness.report.header import INCOMPLETE, machine_words
from harness.report.markdown import lines_markdown, pairs_markdown, table_markdown
from harness.report.sites import sites_answer, sites_tables
from harness.report.table import PlainTable
from harness.report.version_costs import counted_words


def explain_answer(result: ExplainResult) -> list[str]:
    """The answer, a sentence each."""
    match result.body:
        case FunctionsBody() as functions:
            return functions_answer(functions)
        case GrowthBody() as growth:
            return growth_answer(growth)
        case SitesBody() as sites:
            return sites_answer(sites)


def explain_tables(result: ExplainResult, rows: int) -> list[PlainTable]:
    """All tables, ``rows`` functions and as many lines."""
    match result.body:
        case FunctionsBody() as functions:
            tables = functions_tables(functions, rows)
        case GrowthBody() as growth:
            tables = growth_tables(growth, rows)
        case SitesBody() as sites:
            tables = sites_tables(sites, rows)
    return [table for table in tables if table.groups]


def explain_header(result: ExplainResult) -> list[tuple[str, str]]:
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
        ("incomplete", "" if result.is_complete else INCOMPLETE),
        ("versions", versions),
        ("machine", machine_words(result.machine)),
        ("workload", result.workload.name),
        ("cell", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
        ("counted", counted),
        ("command", result.command),
    ]
    return [(label, words) for label, words in lines if words]


def explain_markdown(result: ExplainResult, rows: int) -> str:
    """The same as Markdown."""
    parts = [lines_markdown("", explain_answer(result))]
    parts += map(table_markdown, explain_tables(result, rows))
    parts += [lines_markdown("Notes", result.notes)] if result.notes else []
    return "\n\n".join([*parts, pairs_markdown(explain_header(result))]) + "\n"
