"""What `advise --models` shows: where a change of the host path matters, in words and tables."""

from collections.abc import Iterator, Sequence
from functools import partial

from harness import format as fmt
from harness.experiment.crossover import (
    LATENCIES,
    Check,
    CrossoverPoint,
    CrossoverResult,
    HostChange,
    Latency,
    ModelSteps,
    RelativeChange,
    by_batch,
)
from harness.metrics import METRICS
from harness.render.report import Picture, Report, remarks
from harness.render.table import PlainTable, Row
from harness.report.crossover_image import crossover_image
from harness.report.header import machine_words
from harness.report.power import surroundings_words

TITLES: dict[Latency, str] = {
    "token": "time per output token",
    "gap": "99th percentile of the gaps between tokens",
    "first_token": "time to first token",
}

_MARKS = {"faster": "▲", "slower": "▼", "small": "=", "open": "?"}


def describe_crossover(result: CrossoverResult) -> Report:
    """All that is known of it."""
    answer, *more = _answer(result) if result.points else ["✗ Nothing was measured."]
    return Report(
        heading="gcbench advise --models",
        name=result.name,
        answer=answer,
        tables=_tables(result),
        sentences=more,
        lists=remarks(result),
        facts=_header(result),
        command=result.command,
        pictures=[
            Picture(
                "Where it matters",
                "Below which step of the device a candidate matters, by batch: a line a heap; a "
                "thin line is a modelled device's step.",
                partial(crossover_image, result),
            )
        ]
        if result.points
        else [],
    )


def _header(result: CrossoverResult) -> list[tuple[str, str]]:
    """What was measured, on what."""
    surroundings = result.surroundings
    lines = [
        ("surroundings", surroundings_words(surroundings)),
        ("machine", machine_words(result.machine)),
        ("workload", ", ".join(dict.fromkeys(each.name for each in result.workloads))),
        ("all cells", ", ".join(f"{axis} {value}" for axis, value in result.axes.items())),
        (
            "measured",
            f"{result.rounds} rounds on a device that takes no time; steps of models are modelled",
        ),
    ]
    return [(label, words) for label, words in lines if words]


def _answer(result: CrossoverResult) -> list[str]:
    """The answer, two or three sentences a candidate, then what the checks say."""
    sentences = [
        sentence
        for candidate in result.candidates
        for sentence in _candidate_words(result, candidate)
    ]
    return [*sentences, *_check_words(result)]


def _candidate_words(result: CrossoverResult, candidate: str) -> Iterator[str]:
    mine = [p for p in result.points if p.candidate == candidate and "token" in p.latencies]
    if not mine:
        yield f"{candidate}: nothing was measured."
        return
    yield from _limit_sentences(result, candidate, mine)
    yield from _model_words(result, candidate)


def _limit_sentences(
    result: CrossoverResult, candidate: str, points: Sequence[CrossoverPoint]
) -> Iterator[str]:
    """Where it matters most, to the better and to the worse; or that it does nowhere."""
    percent = fmt.rough_percent(result.tolerance)
    told: dict[str, list[tuple[float, CrossoverPoint]]] = {"saves": [], "costs": []}
    largest = 0.0
    for point in points:
        change = point.latencies["token"]
        estimate, low, high = change.small_from(result.tolerance)
        largest = max(largest, high)
        if low > 0:
            told["saves" if change.ratio < 1 else "costs"].append((estimate, point))
    for verb, found in told.items():
        if found:
            seconds, point = max(found, key=lambda each: each[0])
            yield (
                f"{candidate} {verb} {percent} or more of a token's time as long as the device "
                f"takes less than {fmt.seconds(seconds)} a step, at batch "
                f"{fmt.count(point.batch_size)}{_heap_words(result, point)}, where it "
                f"{verb} most."
            )
    if not largest:
        yield (
            f"{candidate} changes a token's time by less than {percent} at every batch, however "
            "quick the device."
        )
    elif not any(told.values()):
        yield (
            f"Whether {candidate} changes a token's time by {percent} anywhere is not told by "
            f"{result.rounds} rounds."
        )


def _heap_words(result: CrossoverResult, point: CrossoverPoint) -> str:
    if len(result.heaps) < 2:
        return ""
    return f" and {fmt.count(point.heap_objects)} heap objects"


def _model_words(result: CrossoverResult, candidate: str) -> Iterator[str]:
    """At which batches it matters with any heap, model by model; where it never does, together."""
    percent = fmt.rough_percent(result.tolerance)
    said: dict[str, list[str]] = {"saves": [], "costs": []}
    never: list[str] = []
    others: list[str] = []
    for model in result.models:
        sizes: dict[int, set[str]] = {}
        for point, change in _changes(result, candidate, model, "token"):
            sizes.setdefault(point.batch_size, set()).add(change.size(result.tolerance))
        found = False
        for verb, size in (("saves", "faster"), ("costs", "slower")):
            batches = [batch for batch, seen in sizes.items() if seen == {size}]
            if batches:
                found = True
                said[verb].append(f"{model.name} {_batch_words(batches, list(sizes))}")
        if not found:
            is_small = all(seen == {"small"} for seen in sizes.values())
            (never if is_small else others).append(model.name)
    for verb, models in said.items():
        if models:
            which = "It" if len(result.heaps) < 2 else "With any heap it"
            yield f"{which} {verb} that much with {'; '.join(models)} (modelled)."
    if never:
        yield (
            f"With {_list(never)} it changes less than {percent} at every batch (modelled): there "
            "it would be over-optimisation."
        )
    if others:
        why = "it depends on the heap, or " if len(result.heaps) > 1 else ""
        yield f"With {_list(others)} {why}these rounds do not tell."


def _batch_words(batches: Sequence[int], known: Sequence[int]) -> str:
    """Of all batches that are known: "from batch 32 on", "at batch 8 and 32"."""
    if len(known) > 1 and list(batches) == list(known):
        return "at every batch"
    if len(batches) > 1 and list(batches) == list(known)[-len(batches) :]:
        return f"from batch {fmt.count(batches[0])} on"
    return f"at batch {_list([fmt.count(batch) for batch in batches])}"


def _list(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _changes(
    result: CrossoverResult, candidate: str, model: ModelSteps, latency: Latency
) -> Iterator[tuple[CrossoverPoint, RelativeChange]]:
    for point in result.points:
        if point.candidate == candidate and latency in point.latencies:
            seconds = model.seconds(latency, point.batch_size)
            yield point, point.latencies[latency].on_device(seconds)


def _check_words(result: CrossoverResult) -> Iterator[str]:
    for latency, title in TITLES.items():
        right, total, num_open = _came_true(result, latency)
        if num_open:
            which = "prediction was" if num_open == 1 else "predictions were"
            yield f"? {num_open} {which} checked of the {title}, and these rounds do not tell."
        if total:
            which = "prediction" if total == 1 else "predictions"
            mark = "" if right == total else "▲ "
            yield (
                f"{mark}{right} of {total} {which} of the {title} for a batch that was not "
                "measured came true in a fresh comparison."
            )


def _came_true(result: CrossoverResult, latency: Latency) -> tuple[int, int, int]:
    """Of the predictions of a latency, how many, of how many, and how many more are open."""
    checks = [check for check in result.checks if check.latency == latency]
    told = [check for check in checks if not check.is_open(result.tolerance)]
    right = sum(check.agrees(result.tolerance) for check in told)
    return right, len(told), len(checks) - len(told)


def _tables(result: CrossoverResult) -> list[PlainTable]:
    """For each candidate where it matters, then each latency by model; the checks last."""
    tables = [
        table
        for candidate in result.candidates
        for table in (
            _limits(result, candidate),
            *(_by_model(result, candidate, latency) for latency in TITLES),
        )
    ]
    tables.append(_checks(result))
    return [table for table in tables if any(table.groups)]


def _limits(result: CrossoverResult, candidate: str) -> PlainTable:
    percent = fmt.rough_percent(result.tolerance)

    def row(heap: int, batch: int, change: HostChange) -> Row:
        estimate, low, high = change.small_from(result.tolerance)
        return (
            fmt.count(heap),
            fmt.count(batch),
            fmt.seconds(change.baseline_seconds),
            fmt.seconds(change.baseline_seconds * change.ratio),
            _limit_words(estimate),
            f"{fmt.seconds(low)} to {fmt.seconds(high)}",
        )

    return PlainTable(
        f"Where {candidate} matters for the {TITLES['token']}",
        ("heap objects", "batch", "before", "after", "matters below", "95 % interval"),
        [
            [
                row(heap, *found)
                for found in by_batch(result.points, candidate, heap, "token").items()
            ]
            for heap in result.heaps
        ],
        f"before: the time with {result.baseline} where the device takes none, after: with "
        f"{candidate}. It changes by {percent} or more where the device's step is shorter than the "
        "time under matters below.",
    )


def _limit_words(seconds: float) -> str:
    return fmt.seconds(seconds) if seconds else "never"


def _by_model(result: CrossoverResult, candidate: str, latency: Latency) -> PlainTable:
    points = [point for point in result.points if point.candidate == candidate]
    batches = sorted({point.batch_size for point in points if latency in point.latencies})

    if not batches:
        return PlainTable("", (), [])

    def row(model: ModelSteps, heap: int) -> Row:
        found = {
            point.batch_size: change
            for point, change in _changes(result, candidate, model, latency)
            if point.heap_objects == heap
        }
        cells = (_change_words(found.get(batch), result.tolerance) for batch in batches)
        return (model.name, fmt.count(heap), *cells)

    right, total, num_open = _came_true(result, latency)
    said = [f"{right} of {total} checks came true."] if total else []
    said += [f"{num_open} of {total + num_open} checks tell nothing."] if num_open else []
    checked = " ".join(said) or "None of it was checked."
    return PlainTable(
        f"Change of the {TITLES[latency]} with {candidate}, by model (modelled)",
        ("model", "heap", *(f"batch\n{fmt.count(batch)}" for batch in batches)),
        [[row(model, heap) for model in result.models] for heap in result.heaps],
        f"▲ less and ▼ more by {fmt.rough_percent(result.tolerance)} at least, = not as much, "
        f"? not told by the measurement. {checked}",
    )


def _change_words(change: RelativeChange | None, tolerance: float) -> str:
    if change is None:
        return fmt.MISSING
    percent = fmt.percent(change.change, signed=True).removesuffix(" %")
    return f"{percent} {_MARKS[change.size(tolerance)]}"


def _checks(result: CrossoverResult) -> PlainTable:
    def row(check: Check) -> Row:
        return (
            f"{check.candidate}, {check.model}\n  {METRICS[LATENCIES[check.latency]].name}",
            fmt.count(check.batch_size),
            *_change_cells(check.predicted),
            *(_change_cells(check.measured) if check.measured else [fmt.MISSING] * 2),
        )

    return PlainTable(
        "Predictions checked on a modelled device",
        ("cell", "batch", "predicted", "95 % interval", "measured", "95 % interval"),
        [[row(check) for check in result.checks]] if result.checks else [],
        "change against the same baseline, at a batch between two that were measured.",
    )


def _change_cells(found: RelativeChange) -> Row:
    change, low, high = found
    return fmt.percent(change, signed=True), fmt.interval((1 + low, 1 + high))
