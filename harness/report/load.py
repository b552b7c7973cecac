"""A run under load on one screen: whether it may be believed, what the server did, the client."""

from pathlib import Path

from harness import format as fmt
from harness.files import StoreError, read_rows
from harness.format import printable
from harness.load.result import LoadResult
from harness.load.server_metrics import figures_of_server
from harness.load.task import ClientHealth
from harness.metrics import METRICS
from harness.render.report import Listing, Picture, Report, known
from harness.render.table import PlainTable, Row
from harness.report.attribution import attribution_answer, attribution_notes, attribution_table
from harness.report.header import machine_words
from harness.report.load_image import distribution_image, timeline_image
from harness.trial.arrival_fidelity import arrival_words

_LATENCIES = {
    "time to first token": "ttft",
    "of it for a connection": "connect",
    "from its scheduled arrival": "ttft_from_schedule",
    "time per output token": "tpot",
    "gap between tokens": "itl",
    "last token": "e2el",
    "last token, from schedule": "e2el_from_schedule",
}
_MOST_SAID = 50
_FIGURES = ("mean", "median", "p99", "max")


def describe_load(result: LoadResult, folder: Path | None = None) -> Report:
    """Whether the run may be believed, what the server did, and how the client fared.

    ``folder``: where the rows of its requests are, for pictures of them.
    """
    found = result.attribution
    return Report(
        heading="gcbench load",
        name=result.name,
        answer=_answer(result),
        attention=fmt.capitalised(" ".join(f"{each.sentence}." for each in result.broken)),
        tables=[
            _latencies(result),
            *([_percentiles(result)] if result.percentiles else []),
            *([_by_server(result)] if result.by_server else []),
            *([_outcomes(result)] if set(result.outcomes) != {"completed"} else []),
            *([attribution_table(found)] if found else []),
            *([_server(result)] if figures_of_server(result.scrapes) else []),
            _clients(result),
            *([_collections(result)] if result.server_collections else []),
        ],
        sentences=attribution_answer(found) if found else [],
        lists=[Listing("Notes", [*(attribution_notes(found) if found else []), *result.notes])],
        sure=known(
            [
                ("server", f"{', '.join(result.asked.urls)}, model {result.asked.model}"),
                ("workload", _workload(result)),
                ("arrivals", arrival_words(result.trial.delivered)),
                ("tokens", _counts(result)),
                ("goodput", _goodput(result)),
                ("steady", _steady(result)),
            ]
        ),
        facts=known([("machine", machine_words(result.machine))]),
        command=result.command,
        pictures=_pictures(result, folder) if folder and result.num_completed else [],
    )


def _pictures(result: LoadResult, folder: Path) -> list[Picture]:
    try:
        requests, deliveries = [
            read_rows(next((folder / "rows").glob(f"*-{name}.parquet")))
            for name in ("requests", "deliveries")
        ]
    except (StoreError, StopIteration):
        return []  # a picture less; the figures are not made of these rows
    return [
        Picture(
            "Distribution",
            "The share of completed requests that waited at most so long.",
            lambda suffix: distribution_image(requests, suffix, result.name),
        ),
        Picture(
            "Timeline",
            "Completed requests in flight, when each was sent and waited for its first token, and "
            "deliveries per second.",
            lambda suffix: timeline_image(requests, deliveries, suffix, result.name),
            is_dense=True,
        ),
    ]


def _answer(result: LoadResult) -> str:
    metrics = result.trial.metrics
    speed = [
        fmt.with_unit(metrics[name], METRICS[name].unit)
        for name in ("request_throughput", "output_throughput")
        if metrics.get(name) is not None
    ]
    if result.counted_by.get("no_tokens") and result.trial.wall_seconds:
        rate = result.prompt_tokens / result.trial.wall_seconds
        speed.append(f"{fmt.number(rate)} prompt tok/s")
    if metrics.get("output_throughput") is None and result.counted_by.get("unknown"):
        speed.append("tokens/s unknown")
    valid = "✓ valid" if result.is_valid else "✗ invalid, these figures are not the server's"
    return f"{valid}: {', '.join([_requests(result), *speed])}"


def _workload(result: LoadResult) -> str:
    trial = result.trial
    return f"{trial.cell.workload}, seed {trial.seed}, prompts as {result.asked.prompt_as}"


_SOURCES = {
    "token_ids": "token ids",
    "usage": "usage",
    "tokenizer": "--tokenizer",
    "unknown": "nobody (unknown)",
    "no_tokens": "nobody: embeddings have none",
}


def _counts(result: LoadResult) -> str:
    """Who says how many tokens answers have."""
    said = [f"{_SOURCES[name]} ({fmt.count(count)})" for name, count in result.counted_by.items()]
    if len(said) == 1:
        (name,) = result.counted_by
        said = [_SOURCES[name]]
    return f"counted by {', '.join(said)}" if said else ""


def _goodput(result: LoadResult) -> str:
    found = result.goodput
    if found is None:
        return ""
    limits = ", ".join(f"{name} {limit:g} ms" for name, limit in found.objectives.items())
    speed = "" if found.per_second is None else f", {fmt.with_unit(found.per_second, 'req/s')}"
    return f"{fmt.count(found.good)} kept {limits}: {fmt.percent(found.share)} of attempted{speed}"


def _steady(result: LoadResult) -> str:
    """Throughput where the beginning and the end of a run do not lower it."""
    found = result.steady
    if found is None:
        return ""
    low, high = (fmt.number(each) for each in found.ci95)
    return (
        f"{fmt.with_unit(found.served, 'req/s')} (95 %: {low} to {high}) in the last "
        f"{fmt.seconds(found.seconds)} of sending, {fmt.with_unit(found.sent, 'req/s')} sent"
    )


def _percentiles(result: LoadResult) -> PlainTable:
    """A latency a column, each percentile with its interval."""
    names = {"ttft": "first token", "tpot": "per output token", "e2el": "last token"}
    known = [name for name in names if name in result.percentiles]
    cells = {
        (name, each.q): f"{fmt.seconds(each.value)} ({fmt.seconds(low)} to {fmt.seconds(high)})"
        for name in known
        for each in result.percentiles[name]
        for low, high in [each.ci95]
    }
    qs = sorted({q for _, q in cells})
    rows: list[Row] = [(f"p{q:g}", *(cells.get((name, q), "") for name in known)) for q in qs]
    return PlainTable(
        "Percentiles (95 %)",
        ("", *(names[name] for name in known)),
        [rows],
        "intervals as of independent requests; queueing makes neighbours alike",
    )


def _by_server(result: LoadResult) -> PlainTable:
    """A server a row."""
    rows: list[Row] = [
        (
            each.url.partition("://")[2],
            f"{fmt.count(each.num_completed)}/{fmt.count(each.num_attempted)}",
            *(fmt.with_unit(value, METRICS[name].unit) for name, value in each.metrics.items()),
        )
        for each in result.by_server
    ]
    return PlainTable(
        "Server by server",
        ("", "completed", "throughput", "first token", "per token", "last token"),
        [rows],
        "of attempted; medians",
    )


def _server(result: LoadResult) -> PlainTable:
    rows: list[Row] = [
        (each.label, fmt.seconds(each.value) if each.unit else fmt.number(each.value))
        for each in figures_of_server(result.scrapes)
    ]
    return PlainTable("What the server says of the run", ("/metrics", ""), [rows])


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
        elif prefix == "tpot" and result.counted_by.get("unknown"):
            rows.append((label, "unknown", "", "", ""))
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
        "How requests ended",
        ("", "the first one says", "requests"),
        [rows],
        f"together {total}",
        left=2,
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
