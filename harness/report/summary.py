"""The tables of an experiment's report, as plain text."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from engines.protocol import PHASES
from harness import format as fmt
from harness.experiment.reference import references
from harness.experiment.result import (
    Apart,
    CellResult,
    Comparison,
    ExperimentResult,
    FullPasses,
    StepParts,
    cell_id,
)
from harness.metrics import METRICS
from harness.render.table import PlainTable, Row
from harness.render.verdict_words import REFERENCE, VERDICT_MEANINGS, VERDICTS
from harness.report.collection_words import collections_words, kinds_words
from harness.report.header import varying_axes
from harness.report.power import detects
from harness.report.steady_words import unsteady_words
from harness.trial.spec import TrialFailure
from harness.trial.steady_state import DriftingSteps, UnsteadyLoad


def cells_table(result: ExperimentResult) -> PlainTable:
    """The figures of each cell: medians over its rounds."""
    columns = (
        "cell",
        "req/s",
        "TPOT\nms",
        "host µs\nreq·step",
        f"collected\n{kinds_words(result.machine.python)}",
        "pause\nshare",
        "gc\neffect",
    )

    def row(cell: CellResult) -> Row:
        return (
            cell.id,
            fmt.number(median(cell, "request_throughput")),
            fmt.number(median(cell, "tpot_median", 1e3)),
            fmt.number(median(cell, "host_time_per_request_step", 1e6)),
            collections_words(median(cell, f"gc_collections_gen{gen}") for gen in range(3)),
            fmt.percent(median(cell, "gc_pause_share")),
            _effect_words(cell),
        )

    groups = by_group(result)
    apart = " Cells are only judged against cells of their own group." if len(groups) > 1 else ""
    return PlainTable(
        "Cells" + on_device(result.cells),
        columns,
        [[row(cell) for cell in group] for group in groups],
        f"Medians over rounds.{apart}{_effect_note(result.cells)}{_steady_words(result.cells)}",
    )


def _effect_words(cell: CellResult) -> str:
    """What the collector costs, with how far its 95 % interval reaches where there is one."""
    found = cell.metrics.get("gc_effect")
    effect = collectors_cost(cell)
    shown = fmt.percent(effect, signed=True)
    if found is None or effect is None or found.ci95 is None:
        return shown
    reach = max(found.ci95[1] - effect, effect - found.ci95[0])
    return f"{shown} ±{fmt.percent(reach).removesuffix(' %')}"


def _effect_note(cells: list[CellResult]) -> str:
    effects = [cell.metrics["gc_effect"] for cell in cells if "gc_effect" in cell.metrics]
    if not any(each.ci95 for each in effects):
        return ""
    return " gc effect: host time that the collector adds, ± its 95 % interval."


def _steady_words(cells: list[CellResult]) -> str:
    """In how many cells there is a steady state, over how much of the run; why not in others."""
    shares = [share for cell in cells if (share := median(cell, "steady_share")) is not None]
    without = [
        (cell.id, found)
        for cell in cells
        if isinstance(found := cell.steady_state, UnsteadyLoad | DriftingSteps)
        and median(cell, "steady_share") is None
    ]
    words = ""
    if shares:
        ends = dict.fromkeys(fmt.percent(share) for share in (min(shares), max(shares)))
        told = len(shares) + len(without)
        words += f" A steady state was reached in {len(shares)} of {told} cells, "
        words += f"for {' to '.join(ends)} of the steps."
    if without:
        others = f" and {len(without) - 1} more" if len(without) > 1 else ""
        name, found = without[0]
        words += f" No steady state in {name}{others}: {unsteady_words(found)}."
    return words


def metric_words(name: str) -> str:
    """A metric's name in a sentence: "TPOT median"."""
    return METRICS[name].words


def phases_table(result: ExperimentResult) -> PlainTable:
    """Where a step's time goes: mean µs per step, median over rounds."""

    def row(cell: CellResult) -> Row:
        phases = (fmt.number(median(cell, f"phase_{phase}", 1e6)) for phase in PHASES)
        step = fmt.number(median(cell, "step_time_median", 1e6))
        return (cell.id, *phases, fmt.number(median(cell, "host_time_per_step", 1e6)), step)

    return PlainTable(
        "Phases of a step, µs" + on_device(result.cells),
        ("cell", *PHASES, "host time", "step\nmedian"),
        [[row(cell) for cell in group] for group in by_group(result)],
        "Mean of a trial's steps, median over rounds. host time: all but the wait for the device.",
    )


def modes_tables(result: ExperimentResult) -> list[PlainTable]:
    """What each mode of output processing does to users and device; none where one mode ran."""
    if "output_processing" not in varying_axes(result):
        return []

    def row(cell: CellResult) -> Row:
        return (
            cell.id,
            fmt.number(median(cell, "tpot_median", 1e3)),
            fmt.number(median(cell, "ttft_median", 1e3)),
            fmt.number(median(cell, "ttft_p99", 1e3)),
            fmt.number(median(cell, "output_processing_per_step", 1e3)),
            fmt.percent(median(cell, "device_idle_share")),
            fmt.number(median(cell, "surplus_tokens")),
        )

    return [
        PlainTable(
            "Output processing" + on_device(result.cells),
            (
                "cell",
                "TPOT\nms",
                "TTFT\nms",
                "TTFT\np99 ms",
                "outputs\nms·step",
                "device\nidle",
                "surplus\ntokens",
            ),
            [[row(cell) for cell in group] for group in by_group(result)],
            "Medians over rounds. outputs: time to make a step's text and output objects, in "
            "whichever thread or process. surplus tokens: sampled for a request that had ended "
            "already, and dropped.",
        )
    ]


def verdict_tables(result: ExperimentResult) -> list[PlainTable]:
    """One table for each baseline and metric that decides."""
    cells = {cell.id: [cell] for cell in result.cells}
    off = references(result)
    comparisons: defaultdict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for comparison in result.comparisons:
        comparisons[comparison.metric, comparison.baseline].append(comparison)
    tolerance = fmt.percent(result.tolerance)
    return [
        PlainTable(
            f"{metric} against {baseline}{on_device(cells.get(baseline, []))}",
            ("cell", "change", "95 % interval", "verdict", "detects"),
            [[_verdict_row(each, is_reference=each.candidate in off) for each in group]],
            f"{direction_words(metric).capitalize()}. change: measured round by round, so it "
            "may differ a little from the ratio of two medians. same: "
            f"{VERDICT_MEANINGS['same']} of ±{tolerance}. detects: "
            f"{VERDICT_MEANINGS['detects']} in {fmt.rounds(each.rounds for each in group)}.",
        )
        for (metric, baseline), group in comparisons.items()
    ]


def step_tables(result: ExperimentResult) -> list[PlainTable]:
    """What host time is spent on, where it was measured: code, young collections, full passes."""
    groups = [[(c.id, c.step) for c in group if c.step] for group in by_group(result)]
    if not any(groups):
        return []

    def row(name: str, step: StepParts) -> Row:
        parts = (step.code, step.young, step.full, step.code + step.young + step.full)
        return (name, *(fmt.number(1e6 * each) for each in parts))

    return [
        PlainTable(
            "A step's host time by what it is spent on, µs" + on_device(result.cells),
            ("cell", "code", "young\ncollections", "full\npasses", "in all"),
            [[row(*each) for each in group] for group in groups],
            "Medians over rounds; full passes as often as they come in the long run, where that "
            "was counted, else as often as in the windows.",
        )
    ]


def apart_tables(result: ExperimentResult) -> list[PlainTable]:
    """Changes without full passes, and those passes, where there are any; a table a baseline."""
    apart: defaultdict[tuple[str, str], list[tuple[str, Apart]]] = defaultdict(list)
    for each in result.comparisons:
        if each.apart:
            apart[each.metric, each.baseline].append((each.candidate, each.apart))

    def row(candidate: str, each: Apart) -> Row:
        return (
            candidate,
            fmt.percent(each.code.ratio - 1, signed=True),
            fmt.interval(each.code.ci95),
            f"±{fmt.percent(each.code.mde)}",
            passes_words(each.full_passes[1]),
        )

    return [
        PlainTable(
            f"{metric} without full passes, against {baseline}",
            ("cell", "change", "95 % interval", "detects", "full passes"),
            [[row(*each) for each in group]],
            "full passes: collections of the whole heap; how many come while the workload is "
            "served once in the long run, or came in how many trials; the time of one, the time "
            f"that they add. Of {baseline}: {passes_words(group[0][1].full_passes[0])}.",
        )
        for (metric, baseline), group in apart.items()
    ]


def passes_words(passes: FullPasses) -> str:
    """Full passes of a cell: "1.05, 212 ms, +42 %", or "7 in 7, 212 ms, +42 %"."""
    often = f"{fmt.count(passes.count)} in {fmt.count(passes.trials)}"
    if passes.per_serving is not None:
        often = fmt.number(passes.per_serving)
    if not passes.added:
        return often
    return f"{often}, {fmt.seconds(passes.seconds)}, {fmt.percent(passes.added, signed=True)}"


def failure_lines(result: ExperimentResult) -> list[str]:
    """The trials that gave no result, like ones together."""
    return trial_failure_lines(result.failures, varying_axes(result))


def trial_failure_lines(failures: Iterable[TrialFailure], varying: list[str]) -> list[str]:
    """A line for each reason, with the cells named by the axes that vary."""
    alike: defaultdict[tuple[str, str], list[TrialFailure]] = defaultdict(list)
    for failure in failures:
        alike[failure.kind.replace("_", " "), failure.reason].append(failure)
    return [f"{_which(group, varying)} {kind}: {reason}" for (kind, reason), group in alike.items()]


def first_names(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many more there are: "a; b; c; and 4 more"."""
    more = len(names) - most
    return "; ".join([*names[:most], f"and {more} more"] if more > 0 else names)


def _which(failures: list[TrialFailure], varying: list[str]) -> str:
    """The cells and modes of trials that failed alike, and how many those were."""
    cells = list(dict.fromkeys(cell_id(failure.cell, varying) for failure in failures))
    modes = ", ".join(dict.fromkeys(failure.mode for failure in failures))
    return (
        f"{first_names(cells)} ({modes}{f', {len(failures)} times' if len(failures) > 1 else ''})"
    )


def by_group(result: ExperimentResult) -> list[list[CellResult]]:
    """The cells by group, groups and cells in the order in which they stand."""
    groups: defaultdict[int, list[CellResult]] = defaultdict(list)
    for cell in result.cells:
        groups[cell.group].append(cell)
    return list(groups.values())


def median(cell: CellResult, metric: str, scale: float = 1.0) -> float | None:
    """A metric's median, or what it is in the long run, times ``scale``; None where it has none."""
    found = cell.metrics.get(metric)
    return None if found is None or found.value is None else found.value * scale


def collectors_cost(cell: CellResult) -> float | None:
    """``gc_effect``: the paired estimate, the median where a stored result has none."""
    found = cell.metrics.get("gc_effect")
    return None if found is None else found.value


def on_device(cells: list[CellResult]) -> str:
    """A title's ending that says where the figures come from a modelled device."""
    devices = {cell.axes.get("device") for cell in cells}
    return ", on a modelled device" if devices == {"modelled"} else ""


def direction_words(metric: str) -> str:
    """Which way is better: "higher is better"."""
    direction = METRICS[metric].direction if metric in METRICS else "neither"
    return "no better side" if direction == "neither" else f"{direction} is better"


def _verdict_row(comparison: Comparison, *, is_reference: bool) -> Row:
    return (
        comparison.candidate,
        fmt.percent(comparison.ratio - 1, signed=True),
        fmt.interval(comparison.ci95),
        REFERENCE if is_reference else VERDICTS[comparison.verdict],
        detects(comparison.mde),
    )
