"""A run under load on one screen: whether it may be believed, what the server did, the client."""

from rich.console import Console

from harness import format as fmt
from harness.format import printable
from harness.load.result import LoadResult
from harness.load.task import ClientHealth
from harness.metrics import METRICS
from harness.report.attribution import attribution_answer, attribution_notes, attribution_table
from harness.report.table import PlainTable, Row
from harness.report.terminal import print_lines, print_pairs, print_table

_LATENCIES = {
    "time to first token": "ttft",
    "from its scheduled arrival": "ttft_from_schedule",
    "time per output token": "tpot",
    "gap between tokens": "itl",
    "last token": "e2el",
    "last token, from schedule": "e2el_from_schedule",
}
_MOST_SAID = 50
_FIGURES = ("mean", "median", "p99", "max")


def load_tables(result: LoadResult, console: Console) -> None:
    """Print a run: verdict, throughput, latencies, how requests ended, how the client fared."""
    print_pairs(_header(result), console)
    print_lines("Not valid", [f"{each.sentence}." for each in result.broken], console, style="red")
    print_table(_latencies(result), console)
    if set(result.outcomes) != {"completed"}:
        print_table(_outcomes(result), console, left=2)
    if result.attribution is not None:
        print_lines("", attribution_answer(result.attribution), console)
        print_table(attribution_table(result.attribution), console)
    print_table(_clients(result), console)
    if result.server_collections:
        print_table(_collections(result), console)
    about = [] if result.attribution is None else attribution_notes(result.attribution)
    print_lines("Notes", [*about, *result.notes], console)


def _header(result: LoadResult) -> list[tuple[str, str]]:
    metrics, asked = result.trial.metrics, result.asked
    speed = [
        fmt.with_unit(metrics[name], METRICS[name].unit)
        for name in ("request_throughput", "output_throughput")
        if metrics.get(name) is not None
    ]
    pairs = [
        ("result", "valid" if result.is_valid else "invalid: these figures are not the server's"),
        ("server", f"{asked.url}, model {asked.model}"),
        (
            "workload",
            f"{result.trial.cell.workload}, seed {result.trial.seed}, prompts as {asked.prompt_as}",
        ),
        ("requests", _requests(result)),
        ("throughput", ", ".join(speed)),
        ("arrivals", result.trial.delivered),
    ]
    return [(label, words) for label, words in pairs if words]


def _requests(result: LoadResult) -> str:
    """Those attempted stand beside those completed, of which all figures are."""
    completed, attempted, asked = (
        fmt.count(each)
        for each in (result.num_completed, result.num_attempted, result.num_requests)
    )
    of_all = "" if attempted == asked else f" (of {asked})"
    within = f" in {fmt.seconds(result.trial.wall_seconds)}" if result.num_completed else ""
    return f"{attempted} attempted{of_all}, {completed} completed{within}"


def _latencies(result: LoadResult) -> PlainTable:
    metrics = result.trial.metrics
    rows: list[Row] = []
    for label, prefix in _LATENCIES.items():
        names = {figure: f"{prefix}_{figure}" for figure in _FIGURES}
        if prefix == "itl":
            names |= {"p99": "itl_gap_p99"}
        values = [metrics.get(name) for name in names.values()]
        if any(value is not None for value in values):
            rows.append((label, *("" if each is None else fmt.seconds(each) for each in values)))
    is_known = metrics.get("ttft_p99") is not None
    return PlainTable(
        "Latency",
        ("", "mean", "median", "p99", "longest"),
        [rows],
        "" if is_known else "p99 of requests: from 662 of them on",
    )


def _outcomes(result: LoadResult) -> PlainTable:
    rows: list[Row] = []
    for name, count in result.outcomes.items():
        said = printable(result.messages.get(name, [""])[0])
        rows.append((name.replace("_", " "), said[:_MOST_SAID], fmt.count(count)))
    total = f"{fmt.count(sum(result.outcomes.values()))} of {fmt.count(result.num_requests)}"
    return PlainTable(
        "How requests ended", ("", "the first one says", "requests"), [rows], f"together {total}"
    )


def _clients(result: LoadResult) -> PlainTable:
    def row(client: ClientHealth) -> Row:
        waited = "" if client.waited_share is None else fmt.percent(client.waited_share)
        return (
            str(client.process),
            fmt.count(client.num_requests),
            fmt.percent(client.cpu_share),
            waited,
            fmt.percent(client.stolen_share),
            fmt.seconds(client.lag_p99),
            fmt.seconds(client.lag_max),
            str(sum(client.collector.collections)),
            fmt.seconds(client.collector.max_pause_seconds),
        )

    return PlainTable(
        "Client processes",
        (
            "",
            "requests",
            "CPU",
            "waited\nfor core",
            "stolen",
            "loop lag\np99",
            "loop lag\nmax",
            "collec-\ntions",
            "longest\npause",
        ),
        [[row(client) for client in result.clients]],
    )


def _collections(result: LoadResult) -> PlainTable:
    rows: list[Row] = [
        (name, fmt.number(value))
        for name, value in sorted(result.server_collections.items())
        if value
    ]
    return PlainTable(
        "The server's collector during the run",
        ("series", "rise"),
        [rows],
        "" if rows else "no collection",
    )
