"""What `load --sweep` shows: where throughput ends, and each load on the way there."""

from harness import format as fmt
from harness.load.sweep import ATTAINED, SweepPoint, SweepResult
from harness.render.report import Picture, Report, remarks
from harness.render.table import PlainTable, Row
from harness.report.header import machine_words
from harness.report.sweep_image import sweep_image

_UNITS = {"rate": "req/s", "concurrency": "streams"}


def describe_sweep(result: SweepResult) -> Report:
    """All that is known of it."""
    return Report(
        heading="gcbench load --sweep",
        name=result.name,
        answer=_answer(result),
        tables=[_points(result)],
        sentences=[_kept(result)] if result.objectives else [],
        lists=remarks(result),
        sure=[("server", f"{', '.join(result.asked.urls)}, model {result.asked.model}")],
        facts=[("machine", machine_words(result.machine))],
        command=result.command,
        pictures=[
            Picture(
                "Latency against throughput",
                "Median latencies against the requests per second that the server gave, a dot per "
                "load; the band is where its throughput ends, with the 95 % interval.",
                lambda suffix: sweep_image(result, suffix),
            )
        ],
    )


def _answer(result: SweepResult) -> str:
    found, unit = result.knee, _UNITS[result.kind_of]
    if found is None:
        return "✗ It is not known where throughput ends."
    low, high = (fmt.number(each) for each in found.ci95)
    said = f"✓ Throughput ends at {fmt.number(found.value)} {unit} (95 %: {low} to {high})"
    if result.kind_of == "rate":
        return f"{said}."
    return f"{said}, {fmt.with_unit(found.capacity, 'req/s')}."


def _kept(result: SweepResult) -> str:
    limits = ", ".join(f"{name} {limit:g} ms" for name, limit in result.objectives.items())
    unit = _UNITS[result.kind_of]
    if result.kept is not None:
        low, high = map(fmt.number, result.kept)
        share = fmt.percent(ATTAINED)
        return f"{share} of requests keep {limits} up to between {low} and {high} {unit}."
    kept = sum(each.goodput.share >= ATTAINED for each in result.points if each.goodput)
    return f"{kept} of {len(result.points)} loads kept {limits} in {fmt.percent(ATTAINED)}."


def _points(result: SweepResult) -> PlainTable:
    rows: list[Row] = [_row(each) for each in result.points]
    return PlainTable(
        "Loads",
        (
            _UNITS[result.kind_of],
            "sent\nreq/s",
            "served\nreq/s",
            "TTFT\nmedian",
            "TPOT\nmedian",
            "last token\nmedian",
            *(["kept"] if result.objectives else []),
        ),
        [rows],
        "served: while requests were being sent, the first quarter left out",
    )


def _row(point: SweepPoint) -> Row:
    steady = point.steady
    latencies = [
        point.latencies.get(name) for name in ("ttft_median", "tpot_median", "e2el_median")
    ]
    return (
        f"{point.asked:.4g}" + (" ✗" if point.invalid else ""),
        "" if steady is None else fmt.number(steady.sent),
        "" if steady is None else fmt.number(steady.served),
        *("" if each is None else fmt.seconds(each) for each in latencies),
        *([fmt.percent(point.goodput.share)] if point.goodput else []),
    )
