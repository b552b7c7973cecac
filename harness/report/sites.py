"""What `gcbench explain --by collections` shows: the lines that make what collections find."""

from harness import format as fmt
from harness.explain.result import Price, SitesBody
from harness.explain.sites import LineOfSites, by_line
from harness.explain.sources import Sources
from harness.render.table import PlainTable, Row
from harness.report.function_words import shortened

_NAMED = 0.9
"""Share of the young objects whose lines the answer counts."""
_WIDEST_TEXT = 40
_MOST_TYPES = 3
_SURE = 1.96  # standard errors of a 95 % interval


def sites_answer(body: SitesBody) -> list[str]:
    """The answer, a sentence each."""
    lines = [each for each in by_line(body.found) if each.file]
    times, counts = _times(body), "/".join(map(str, body.found.collections))
    sentences = [
        f"The collector ran {fmt.count(times)} times ({counts}) in {fmt.count(body.num_steps)} "
        "steps."
    ]
    if not lines:
        return [*sentences, "No line can be named that made what it found."]
    growing = max(lines, key=lambda each: each.retained)
    if growing.retained >= body.num_steps:
        sentences.append(
            f"▲ {fmt.count(growing.retained)} objects of {growing.file}:{growing.line} were still "
            "there after the last step. `gcbench run --mode leaks` says whether the heap grows "
            "without end."
        )
    first, most = lines[0], _most(lines)
    named = f"{len(most)} lines make" if len(most) > 1 else "One line makes"
    fewer = first.share * times
    return [
        *sentences,
        f"{named} {fmt.percent(sum(each.share for each in most))} of the young objects that it "
        "found.",
        f"Without those of {first.file}:{first.line} it would run about {fmt.percent(first.share)} "
        f"less often: {fewer:,.0f} times fewer (95 %: {_interval(first, times)}), modelled.",
    ]


def sites_tables(body: SitesBody, rows: int) -> list[PlainTable]:
    """The lines, and what a change of their objects would touch."""
    return [_lines(body, rows), _prices(body, rows)]


def _lines(body: SitesBody, rows: int) -> PlainTable:
    sources, lines = Sources(body.roots), by_line(body.found)
    times, shown = _times(body), lines[:rows]
    left = len(lines) - len(shown)
    more = f" {left} more lines are in --json FILE." if left > 0 else ""
    return PlainTable(
        "Lines whose objects the collector found young, the largest share first",
        (
            "line",
            "share",
            "of\npauses",
            "fewer\ncollec-\ntions",
            "95 %\ninterval",
            "pro-\nmoted",
            "re-\ntained",
        ),
        [[_row(each, sources, times) for each in shown]],
        "fewer collections: modelled, if the collector did not track these objects; promoted: "
        "reached the oldest generation; retained: there after the last step. "
        f"from: where most were asked for.{more}",
    )


def _prices(body: SitesBody, rows: int) -> PlainTable:
    shown = {(each.file, each.line) for each in by_line(body.found)[:rows]}
    priced = [each for each in body.prices if (each.file, each.line) in shown]
    return PlainTable(
        "What another type in their place would touch",
        ("line", "made at", "read at", "files"),
        [[_price_row(each) for each in priced]] if priced else [],
        "made at: lines that make such objects; read at: lines that read them, found by name, so "
        "there may be fewer. Below a line: how many of those do with a list or tuple what an array "
        "does not bear, or answers otherwise.",
    )


def _price_row(each: Price) -> Row:
    hazards = ", ".join(f"{what} {len(places)}" for what, places in each.hazards.items())
    place = _short(each.file, each.line) + (f"\n  {hazards}" if hazards else "")
    return (place, *map(fmt.count, (len(each.made), len(each.read), each.num_files)))


def _row(each: LineOfSites, sources: Sources, times: int) -> Row:
    return (
        _place(each, sources),
        fmt.percent(each.share),
        fmt.percent(each.pause_share),
        f"{each.share * times:,.0f}",
        _interval(each, times),
        fmt.count(each.promoted),
        fmt.count(each.retained),
    )


def _place(each: LineOfSites, sources: Sources) -> str:
    types = ", ".join(name.rpartition(".")[2] for name in each.types[:_MOST_TYPES])
    if not each.file:
        return f"made before, or by no line\n  {types}"
    text = sources.line(each.file, each.line)
    shown = [f"  {shortened(text, _WIDEST_TEXT)}"] if text else []
    words = [_short(each.file, each.line), *shown, f"  {types}"]
    words += [f"  from {_short(*caller)}" for caller in each.path[:-1][-1:]]
    return "\n".join(words)


def _short(file: str, line: int) -> str:
    """With its folder, which is enough to tell files apart."""
    return f"{'/'.join(file.split('/')[-2:])}:{line}"


def _most(lines: list[LineOfSites]) -> list[LineOfSites]:
    """As few lines as make up most of the shares."""
    total, most = 0.0, []
    for each in lines:
        if total >= _NAMED:
            break
        total += each.share
        most.append(each)
    return most


def _interval(each: LineOfSites, times: int) -> str:
    low, high = (max(0.0, each.share + sign * _SURE * each.share_error) for sign in (-1, 1))
    return f"{low * times:,.0f} to {min(1.0, high) * times:,.0f}"


def _times(body: SitesBody) -> int:
    return sum(body.found.collections)
