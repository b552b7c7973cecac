"""A report as GitHub Markdown: the answer first, all figures folded away below it."""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from harness.render.markdown_escape import code_block, code_span, escaped, escaped_inside
from harness.render.report import Listing, Pairs, Report, Section, known
from harness.render.table import PlainTable


def report_markdown(report: Report, picture: str = "") -> str:
    """The report for a pull request, a page or a chat, its sentences in short where it has such.

    What commits and their code say is shown as it stands: no markup comes of it. ``picture``: the
    path of the report's first picture from there, "" for none.
    """
    return "\n\n".join(filter(None, [*_answer(report, picture), _details(report)])) + "\n"


def _answer(report: Report, picture: str) -> Iterator[str]:
    yield f"### {report.heading}: {escaped_inside(report.answer)}"
    if report.advice:
        yield escaped(report.advice)
    if report.attention:
        yield f"**Attention**: {escaped(report.attention)}"
    if picture:
        yield f"![{escaped_inside(report.pictures[0].text)}]({quote(picture)})"
    yield from map(table_markdown, report.tables)
    yield _pairs(report.short) or _lines(report.sentences)
    if report.snippet:
        yield code_block(report.snippet.splitlines())
    for section in report.sections:
        yield from _section(section)
    yield from (_listing(each) for each in report.lists if each.is_bad)
    own = [] if report.short else [("command", report.command)]
    commands = known([*report.next, *own])
    yield "\n".join(filter(None, [_pairs(report.sure), _commands(commands)]))


def _commands(commands: Pairs) -> str:
    return "\n".join(f"- **{label}**: {code_span(words)}" for label, words in commands)


def _section(section: Section) -> Iterator[str]:
    yield f"#### {code_span(section.title)}"
    yield from map(table_markdown, section.tables)
    yield _lines(section.lines)
    if section.commands:
        yield code_block(list(section.commands))


def _details(report: Report) -> str:
    own = [("command", report.command)] if report.short else []
    inside = [
        _lines(report.sentences) if report.short else "",
        "\n".join(filter(None, [_pairs(report.facts), _commands(known(own))])),
        *map(table_markdown, report.more),
        *(_listing(each) for each in report.lists if not each.is_bad),
    ]
    text = "\n\n".join(filter(None, inside))
    return f"<details><summary>All figures</summary>\n\n{text}\n\n</details>" if text else ""


def _pairs(pairs: Pairs) -> str:
    """Labels and what belongs to them, as a list; what goes on stands below its label, as deep
    as it is indented."""
    lines = []
    for place, (label, words) in enumerate(pairs):
        goes_on = not label or not all(label for label, _ in pairs[place + 1 : place + 2])
        if label:
            lines.append(f"- **{label}**:" + ("" if goes_on else f" {escaped_inside(words)}"))
        if goes_on:
            text = words.lstrip(" ")
            lines.append(f"  {' ' * (len(words) - len(text))}- {escaped(text)}")
    return "\n".join(lines)


def _lines(lines: Sequence[str]) -> str:
    """A list."""
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _listing(each: Listing) -> str:
    return f"**{each.title}**\n\n{_lines(each.lines)}" if each.lines else ""


def table_markdown(table: PlainTable) -> str:
    """A plain table as Markdown, its groups of rows one below the other."""
    rows = [table_row(map(escaped_inside, row)) for group in table.groups for row in group]
    rule = "|---" * table.left + "|---:" * (len(table.columns) - table.left) + "|"
    body = "\n".join((table_row(map(escaped_inside, table.columns)), rule, *rows))
    title = f"**{escaped_inside(table.title)}**" if table.title else ""
    caption = f"<sub>{escaped_inside(table.caption)}</sub>" if table.caption else ""
    return "\n\n".join(filter(None, (title, body, caption)))


def table_row(cells: Iterable[str]) -> str:
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"
