"""What `load --http-cost` shows: what HTTP adds per request and per token, in words and tables."""

import statistics
from collections.abc import Callable

from harness import format as fmt
from harness.load.both_ways import CellBothWays, HttpResult, Pair
from harness.render.report import Report, remarks
from harness.render.table import PlainTable, Row
from harness.report.header import machine_words

_ADDS = {"ttft_mean": "per request", "tpot_mean": "per output token"}
_TITLES = {
    "ttft_mean": "Time to first token, mean over requests",
    "tpot_mean": "Time per output token, mean over requests",
}


def describe_http(result: HttpResult) -> Report:
    """All that is known of it."""
    answer, *more = _answer(result) or ["✗ Nothing was measured."]
    return Report(
        heading="gcbench load --http-cost",
        name=result.name,
        answer=answer,
        tables=_tables(result) if result.cells else [],
        sentences=more,
        lists=remarks(result),
        facts=_header(result),
        command=result.command,
    )


def _header(result: HttpResult) -> list[tuple[str, str]]:
    """What was measured, on what."""
    return [
        ("machine", machine_words(result.machine)),
        ("workload", result.workloads[0].name),
        ("measured", f"{result.rounds} rounds, each cell both ways in each, one after the other"),
    ]


def _answer(result: HttpResult) -> list[str]:
    """The answer, a sentence a cell."""
    return [_sentence(cell) for cell in result.cells]


def _tables(result: HttpResult) -> list[PlainTable]:
    """A table for each metric, then throughput and the server's own CPU time."""
    tables = [_latency(result, name, title) for name, title in _TITLES.items()]
    return [each for each in [*tables, _throughput(result)] if each.groups[0]]


def _sentence(cell: CellBothWays) -> str:
    added = [
        f"{_added_words(cell.metrics[name])} {words}"
        for name, words in _ADDS.items()
        if name in cell.metrics
    ]
    return f"{cell.id}: HTTP adds {' and '.join(added)}."


def _added_words(pair: Pair) -> str:
    """The difference with its interval, or that it may be nothing."""
    found = _signed_seconds(pair.difference)
    if pair.ci95 is None:
        return found
    low, high = pair.ci95
    interval = f"(95 %: {_signed_seconds(low)} to {_signed_seconds(high)})"
    return f"{'nothing measurable' if low < 0 < high else found} {interval}"


def _latency(result: HttpResult, name: str, title: str) -> PlainTable:
    return PlainTable(
        title,
        ("cell", "in process", "over HTTP", "HTTP adds", "95 % interval"),
        [
            [
                _row(cell.id, cell.metrics[name], fmt.seconds, _signed_seconds)
                for cell in result.cells
                if name in cell.metrics
            ]
        ],
        "medians over rounds; what HTTP adds is the mean of the rounds' differences",
    )


def _row(
    name: str, pair: Pair, said: Callable[[float], str], signed: Callable[[float], str]
) -> Row:
    sides = (statistics.median(pair.in_process), statistics.median(pair.over_http))
    interval = " to ".join(map(signed, pair.ci95)) if pair.ci95 else fmt.MISSING
    return (name, *map(said, sides), signed(pair.difference), interval)


def _throughput(result: HttpResult) -> PlainTable:
    rows: list[Row] = []
    for cell in result.cells:
        pair = cell.metrics.get("output_throughput")
        if pair is None:
            continue
        sides = (statistics.median(pair.in_process), statistics.median(pair.over_http))
        cpu = [fmt.seconds(statistics.median(samples)) for samples in cell.cpu_per_token.values()]
        change = fmt.percent(sides[1] / sides[0] - 1, signed=True)
        rows.append((cell.id, *(fmt.rate(each, "tok/s") for each in sides), change, *cpu))
    roles = list(result.cells[0].cpu_per_token) if result.cells else []
    return PlainTable(
        "Throughput, and CPU time of the server's processes per output token",
        (
            "cell",
            "in process",
            "over HTTP",
            "change",
            *(f"CPU per token,\n{role}" for role in roles),
        ),
        [rows],
        "medians over rounds",
    )


def _signed_seconds(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{fmt.seconds(abs(value))}"
