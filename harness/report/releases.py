"""A report along releases: what each one's host path and its collector do."""

from collections.abc import Mapping

from harness import format as fmt
from harness.axes import Value
from harness.collector.result import ProcessResult
from harness.experiment.result import CellResult, ExperimentResult
from harness.metrics import STEP_PARTS
from harness.render.report import Listing, Picture, Report
from harness.render.table import PlainTable, Row
from harness.report.answer import sure_pairs
from harness.report.collection_words import collections_words, kinds_words
from harness.report.header import INCOMPLETE, facts, varying_axes
from harness.report.messages import messages_tables
from harness.report.release_lines import (
    BYTECODES,
    YOUNG,
    ReleaseLines,
    changes_by_release,
    release_lines,
    release_steps,
)
from harness.report.release_sentence import release_headline, sentence
from harness.report.releases_image import releases_image
from harness.report.summary import failure_lines, median, on_device


def describe_releases(result: ExperimentResult) -> Report:
    """What each release's host path and its collector do."""
    labels = result.release_labels
    along = release_lines(result)
    changes = changes_by_release(along.releases, along.known.change)
    counted = any(value is not None for line in along.lines for value in line.medians(YOUNG))
    return Report(
        heading="gcbench releases",
        name=result.name,
        answer=f"{release_headline(along)}."
        if result.is_complete
        else f"✗ Incomplete: {INCOMPLETE}.",
        advice=_largest_step(along),
        tables=[
            releases_table(result, labels),
            costs_table(result, labels),
            *parts_tables(result, labels),
            *messages_tables(result, lambda cell: release_row(result, cell, labels)),
            *roles_tables(result, labels),
        ],
        sentences=[sentence(along, changes)] if len(along.releases) > 1 else [],
        lists=[
            Listing("Trials without a result", failure_lines(result), is_bad=True),
            Listing("Not compared", result.not_compared),
            Listing(
                "Left out",
                [
                    *(f"{release}: {why}" for release, why in result.missing_releases.items()),
                    *result.left_out,
                ],
                is_bad=True,
            ),
            Listing("Notes", result.notes),
        ],
        sure=sure_pairs(result),
        facts=facts(result),
        command=result.command,
        pictures=[
            Picture(
                "Young collections",
                "Collections of generation 0 by release, a line a policy, and where known changes "
                "came in.",
                lambda suffix: releases_image(result, suffix, labels),
            )
        ]
        if counted
        else [],
    )


def _largest_step(along: ReleaseLines) -> str:
    """The release that added most bytecodes, "" where none is known to have."""
    for line in along.lines:
        steps = release_steps(along.releases, line.medians(BYTECODES), BYTECODES)
        if dearer := [each for each in steps if each.value_after > each.value_before]:
            added = fmt.count(dearer[0].value_after - dearer[0].value_before)
            return f"Look first at {dearer[0].after}: it added most, {added} bytecodes per step."
    return ""


Labels = Mapping[str, str]
"""What each value of the axis ``release`` is called."""


def releases_table(result: ExperimentResult, labels: Labels) -> PlainTable:
    """A row a cell, those of a release together."""
    columns = (
        "release",
        f"collected\n{kinds_words(result.machine.python)}",
        "pause\nshare",
        "longest\nms",
        "host µs\nreq·step",
        "heap\nobjects",
        "full pass\nns/object",
        "peak\n/step",
        "left\n/step",
    )

    def row(cell: CellResult) -> Row:
        state = _engine(cell).state
        return (
            release_row(result, cell, labels),
            collections_words(median(cell, f"gc_collections_gen{gen}") for gen in range(3)),
            fmt.percent(median(cell, "gc_pause_share")),
            fmt.number(median(cell, "gc_pause_max", 1e3)),
            fmt.number(median(cell, "host_time_per_request_step", 1e6)),
            fmt.count(state.tracked_objects),
            _full_pass(cell),
            fmt.number(median(cell, "tracked_peak_per_step")),
            fmt.number(median(cell, "tracked_survivors_per_step")),
        )

    engine = release_lines(result).known.name
    rows = list(map(row, result.cells))
    groups: dict[Value, list[Row]] = {}
    for cell, its in zip(result.cells, rows, strict=True):
        groups.setdefault(cell.axes["release"], []).append(its)
    return PlainTable(
        (f"{engine}'s host path" if engine else "Host path")
        + f" by release{on_device(result.cells)}",
        columns,
        list(groups.values()) if len(groups) < len(rows) else [rows],
        "peak and left: objects that a step adds to those that the collector tracks, at its "
        "peak and at its end. *: the release freezes its heap by itself.",
    )


def costs_table(result: ExperimentResult, labels: Labels) -> PlainTable:
    """What a request and step costs: bytecodes, time, and both against the first release."""
    columns = (
        "release",
        "bytecodes\nreq·step",
        "host µs\nreq·step",
        "ns per\nbytecode",
        "schedule\nms/step",
        "process\nms/step",
        "against\nbaseline",
    )
    compared = {each.candidate: each for each in result.comparisons}

    def row(cell: CellResult) -> Row:
        bytecodes = median(cell, "bytecodes_per_request_step")
        host = median(cell, "host_time_per_request_step", 1e9)
        found = compared.get(cell.id)
        return (
            release_row(result, cell, labels),
            fmt.count(bytecodes),
            fmt.number(median(cell, "host_time_per_request_step", 1e6)),
            fmt.number(host / bytecodes if host and bytecodes else None),
            fmt.number(median(cell, "phase_schedule", 1e3) or None),
            fmt.number(median(cell, "phase_process", 1e3) or None),
            f"{fmt.percent(found.ratio - 1, signed=True)} {found.verdict}"
            if found
            else fmt.MISSING,
        )

    return PlainTable(
        "What a step costs by release" + on_device(result.cells),
        columns,
        [list(map(row, result.cells))],
        "Bytecodes and stages are of cells where one process holds all; bytecodes are exact. ns "
        "per bytecode: host time by bytecodes, both of a request and step. Against baseline: in "
        "the metric that decides.",
    )


def parts_tables(result: ExperimentResult, labels: Labels) -> list[PlainTable]:
    """What a step costs by batch and context, where that was counted."""
    rows = []
    for cell in result.cells:
        counted = [median(cell, f"bytecodes_per_{part}") for part in STEP_PARTS]
        if any(each is not None for each in counted):
            shown = [fmt.MISSING if each is None else fmt.count(each) for each in counted]
            rest = fmt.percent(median(cell, "cost_model_rest"))
            rows.append((release_row(result, cell, labels), *shown, rest))
    if not rows:
        return []
    columns = ("release", *(part.replace("_", "\n") for part in STEP_PARTS), "rest")
    return [
        PlainTable(
            "Bytecodes of a step by batch and context",
            columns,
            [rows],
            "fixed + row × requests + pair × requests² + context × tokens in the KV cache + block "
            "× blocks that begin and fill + block step, where any does; prompt: of a token of it. "
            "Rest: of the step that is explained worst.",
        )
    ]


def roles_tables(result: ExperimentResult, labels: Labels) -> list[PlainTable]:
    """Collections in each process, where a cell has several."""
    if all(len(cell.processes) == 1 for cell in result.cells):
        return []
    kinds = kinds_words(result.machine.python)
    return [
        PlainTable(
            "Collections by process",
            ("release", "process", f"collected\n{kinds}", f"pause ms\n{kinds}", "longest\nms"),
            [
                [
                    (
                        release_row(result, cell, labels),
                        process.role,
                        collections_words(process.collections),
                        "/".join(fmt.number(pause * 1e3) for pause in process.pause_seconds),
                        fmt.number(process.max_pause_seconds * 1e3),
                    )
                    for process in cell.processes
                ]
                for cell in result.cells
            ],
            "From one trial: where there are several processes, counts differ a little each time.",
        )
    ]


def release_row(result: ExperimentResult, cell: CellResult, labels: Labels) -> str:
    """What a cell's row is called: the release, and what else varies."""
    axes = [axis for axis in varying_axes(result) if axis not in ("release", "copy")]
    release = str(cell.axes["release"])
    words = [labels.get(release, release), *(str(cell.axes[axis]) for axis in axes)]
    state = _engine(cell).state
    if _engine(cell).policy == "as_is" and state.freeze_count > state.tracked_objects / 2:
        words[-1] += "*"
    return " · ".join(words)


def _engine(cell: CellResult) -> ProcessResult:
    return next(process for process in cell.processes if process.role == "engine")


def _full_pass(cell: CellResult) -> str:
    """Per object of the heap that was passed: under `as_is` the frozen ones were not."""
    process = _engine(cell)
    if process.policy == "as_is" and process.state.freeze_count:
        return fmt.MISSING
    seconds = process.full_pass_seconds / max(1, process.state.tracked_objects)
    return fmt.number(seconds * 1e9)
