"""One trial by itself: what ran, its metrics by subject, and its processes' collectors."""

from collections.abc import Iterator
from pathlib import Path

from engines.protocol import NOT_AS_DEPLOYED
from harness import format as fmt
from harness.axes import values, worth_mentioning
from harness.collector.callers import CollectorCall
from harness.collector.result import PhasePauses, ProcessResult
from harness.experiment.run_result import RunResult
from harness.machine.describe import Machine
from harness.metrics import METRICS
from harness.render.report import Listing, Picture, Report, known, remarks
from harness.render.table import PlainTable, Row
from harness.report.collection_words import collections_words, kind_words, kinds_words
from harness.report.steady_words import steady_words
from harness.report.steps_image import stored_steps, timelines_image
from harness.trial.arrival_fidelity import arrival_words
from harness.trial.growing_lines import growing_words
from harness.trial.messages import Messages
from harness.trial.spec import TrialResult
from harness.trial.step_costs import StageCosts

_SUBJECTS = {
    "Requests": (
        "request_",
        "seconds_",
        "output_throughput",
        "ttft",
        "tpot",
        "itl",
        "e2el",
        "send_",
        "arrival_",
        "bytecodes_per_add",
        "bytecodes_per_finish",
        "bytecodes_per_abort",
        "bytecodes_per_preempt",
        "allocations_per_",
    ),
    "Steps": (
        "num_steps",
        "step_",
        "phase_",
        "output_processing_",
        "host_",
        "bytecodes_per_request_step",
        "instructions_per_request_step",
    ),
    "Steady state": ("steady_",),
    "Scheduler": ("num_preemptions", "surplus_", "prefix_cache_"),
    "Collector": ("gc_", "full_pass", "cyclic_", "explicit_"),
    "Objects and bytes": ("tracked_", "memory_", "allocated_", "leaked_", "handoff_", "peak_"),
    "Across the worker boundary": ("wire_", "scheduler_output_", "model_runner_output_"),
    "Device": ("device_", "achieved_"),
}
_COUNTED = ("steps", "preemptions", "tokens", "collections", "objects", "blocks", "bytecodes")
_MOST_FIELDS = 12
_MOST_LINES = 5
_MODELLED = "The device is modelled: times hold for the model, the host path is the real one."


def describe_run(result: RunResult, folder: Path | None = None) -> Report:
    """Every metric that the trial gave; with its steps where ``folder`` keeps its rows."""
    trial = result.trial
    plain = Report(
        heading="gcbench run",
        name=result.name,
        answer=f"✗ no result: {result.failure}",
        lists=remarks(result),
        command=result.command,
    )
    if trial is None:
        return plain
    states = [f"{process.role}  {_state_words(process)}" for process in trial.processes]
    read_back = "Collectors as read back while their policy was in force"
    return plain._replace(
        answer=_answer(trial),
        attention=_otherwise_deployed(trial)
        or (_MODELLED if trial.cell.device == "modelled" else ""),
        tables=[
            _metrics(trial),
            *map(_fields, trial.messages),
            *([stage_table(trial.stages)] if trial.stages is not None else []),
            _collections(trial.processes, _python(trial)),
            *([_pauses(trial.pauses)] if trial.pauses else []),
        ],
        lists=[Listing(read_back, states), *remarks(result)],
        facts=_about(trial),
        pictures=list(_pictures(folder, result.name)),
    )


def _otherwise_deployed(trial: TrialResult) -> str:
    sentence = trial.engine_state.get(NOT_AS_DEPLOYED)
    return f"{sentence}." if sentence else ""


def _answer(trial: TrialResult) -> str:
    """How far the trial came and what it can tell, in a line."""
    if trial.invalid:
        return f"✗ not to be used: {trial.invalid}"
    steps = trial.metrics.get("num_steps")
    ran = f"{fmt.count(steps)} steps" if steps is not None else "one trial"
    return f"{ran} in mode {trial.mode}; one trial says nothing of noise"


def _pictures(folder: Path | None, name: str) -> Iterator[Picture]:
    if folder and (steps := stored_steps(folder, ())):
        yield Picture(
            "Timeline",
            "How long each step took, and when the collector ran.",
            lambda suffix: timelines_image(steps, suffix, name),
            is_dense=True,
        )


def _metrics(trial: TrialResult) -> PlainTable:
    """Every metric with its unit, subject below subject."""
    groups: list[list[Row]] = []
    for subject, names in by_subject(trial.metrics).items():
        units = {name: METRICS[name].unit if name in METRICS else "" for name in names}
        figures = [(name, _value(trial.metrics[name], unit)) for name, unit in units.items()]
        heads = [subject] + [""] * (len(names) - 1)
        groups.append([(head, *each) for head, each in zip(heads, figures, strict=True)])
    return PlainTable("", ("", "metric", "value"), groups, left=2)


def by_subject(names: dict[str, float | None]) -> dict[str, list[str]]:
    """Metric names by subject, in the order given; "Other" for those that fit none."""
    subjects: dict[str, list[str]] = {}
    for subject, prefixes in _SUBJECTS.items():
        found = [name for name in names if name.startswith(prefixes)]
        if found:
            subjects[subject] = found
    placed = {name for found in subjects.values() for name in found}
    rest = [name for name in names if name not in placed]
    return subjects | ({"Other": rest} if rest else {})


def _value(value: float | None, unit: str) -> str:
    shown = fmt.with_unit(value, unit)
    # "num_steps 303 steps" would say it twice.
    return shown.removesuffix(f" {unit}") if unit in _COUNTED else shown


def _about(trial: TrialResult) -> list[tuple[str, str]]:
    cell = worth_mentioning(values(trial.cell))
    return known(
        [
            ("cell", ", ".join(f"{axis} {value}" for axis, value in cell.items())),
            ("trial", f"mode {trial.mode}, seed {trial.seed}, {fmt.seconds(trial.wall_seconds)}"),
            ("seconds", ", ".join(f"{k} {fmt.seconds(v)}" for k, v in trial.stage_seconds.items())),
            ("arrivals", arrival_words(trial.delivered)),
            ("steady state", steady_words(trial.steady_state)),
            ("engine", ", ".join(f"{k} {fmt.setting(v)}" for k, v in trial.engine_state.items())),
            (
                "by hand",
                "; ".join(_call_words(call, _python(trial)) for call in trial.collector_calls),
            ),
            ("grows", "; ".join(map(growing_words, trial.growing_lines[:_MOST_LINES]))),
            ("interpreter", trial.interpreter),
            ("code", trial.code_commit),
            ("tokens", trial.tokens_sha256[:12]),
            ("text", trial.text_sha256[:12]),
        ]
    )


def _python(trial: TrialResult) -> str:
    return (trial.machine or Machine()).python


def _call_words(call: CollectorCall, python: str) -> str:
    where = f"{call.file}:{call.line} in {call.function}"
    return f"{fmt.count(call.count)} × {kind_words(call.generation, python)}, {where}"


def _fields(messages: Messages) -> PlainTable:
    """The median step's fields that take most, with the rest of them together."""
    total = sum(messages.fields.values())
    shown = list(messages.fields.items())[:_MOST_FIELDS]
    left = total - sum(num_bytes for _, num_bytes in shown)
    if left:
        shown.append((f"{len(messages.fields) - _MOST_FIELDS} others", left))
    rows: list[Row] = [
        (field, fmt.count(num_bytes), fmt.percent(num_bytes / total)) for field, num_bytes in shown
    ]
    compared = f"{fmt.count(messages.num_compared)} of {fmt.count(messages.count - 1)} pairs"
    too_long = f", {fmt.count(messages.num_too_long)} too long" if messages.num_too_long else ""
    return PlainTable(
        f"{messages.direction}: the median step's fields",
        ("field", "bytes", "share"),
        [rows],
        f"edit distances: {compared} of neighbouring messages compared{too_long}",
    )


def stage_table(stages: StageCosts) -> PlainTable:
    """What each stage took, a group of rows for each process."""
    is_time = stages.counted == "cpu_ns"
    scale = 1e3 if is_time else 1.0  # µs
    amount = "CPU µs" if is_time else "bytecodes"
    by_role: dict[str, list[Row]] = {}
    for each in sorted(stages.costs, key=lambda each: -each.amount):
        by_role.setdefault(each.role, []).append(
            (
                each.role,
                each.stage,
                fmt.count(each.calls),
                fmt.number(each.amount / scale / each.calls),
                fmt.number(each.amount / scale / stages.num_rows),
            )
        )
    return PlainTable(
        "Stages by process",
        ("process", "stage", "calls", f"{amount}\nper call", f"{amount} per\nrequest and step"),
        list(by_role.values()),
        "all: the whole process, the client in it too" if is_time else "",
    )


def _collections(processes: list[ProcessResult], python: str) -> PlainTable:
    def row(process: ProcessResult) -> Row:
        return (
            process.role,
            fmt.number(process.cpu_seconds * 1e3),
            collections_words(process.collections),
            "/".join(fmt.number(pause * 1e3) for pause in process.pause_seconds),
            fmt.number(process.max_pause_seconds * 1e3),
            fmt.number(process.full_pass_seconds * 1e3),
        )

    dropped = sum(process.probe_dropped for process in processes)
    return PlainTable(
        f"CPU time and collections by process, {kinds_words(python)}",
        ("process", "CPU\nms", "number", "pause\nms", "longest\nms", "full pass\nms"),
        [[row(process) for process in processes]],
        f"the probe was full and dropped {fmt.count(dropped)} collections" if dropped else "",
    )


def _pauses(pauses: list[PhasePauses]) -> PlainTable:
    total = sum(each.seconds for each in pauses)
    by_role: dict[str, list[Row]] = {}
    for each in pauses:
        by_role.setdefault(each.role, []).append(
            (
                each.role,
                each.phase,
                fmt.count(each.collections),
                fmt.number(each.seconds * 1e3),
                fmt.percent(each.seconds / total) if total else "",
            )
        )
    return PlainTable(
        "Where in the engine's step collections began",
        ("process", "phase", "collec-\ntions", "pauses\nms", "share"),
        list(by_role.values()),
        left=2,
    )


def _state_words(process: ProcessResult) -> str:
    state = process.state
    frozen, tracked = fmt.count(state.freeze_count), fmt.count(state.tracked_objects)
    automatic = "on at " + "/".join(map(str, state.thresholds)) if state.enabled else "off"
    return (
        f"{process.policy}: automatic collection {automatic}, "
        f"{frozen} objects frozen, {tracked} tracked"
    )
