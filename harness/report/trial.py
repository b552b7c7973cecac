"""One trial on one screen: its metrics by subject, and its processes' collectors."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import format as fmt
from harness.axes import values, worth_mentioning
from harness.collector.result import PhasePauses, ProcessResult
from harness.metrics import METRICS
from harness.report.steady_words import steady_words
from harness.report.summary import collections_words
from harness.report.table import PlainTable, Row
from harness.report.terminal import print_pairs, print_table
from harness.trial.arrival_fidelity import arrival_words
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
        "allocations_per_",
    ),
    "Steps": (
        "num_steps",
        "step_",
        "phase_",
        "output_processing_",
        "host_",
        "bytecodes_per_request_step",
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
_LEFT = ("Requests", "Steps")
_GAP = 4
"""Blanks between the two columns of subjects, where both fit."""


def trial_table(trial: TrialResult, console: Console) -> None:
    """Print a trial: what ran, every metric it gave with its unit, the collector read back."""
    print_pairs(_header(trial), console)
    subjects = by_subject(trial.metrics)
    sides = [[subject for subject in subjects if (subject in _LEFT) == left] for left in (1, 0)]
    columns = [_column(side, subjects, trial) for side in sides]
    console.print()
    if sum(console.measure(column).maximum for column in columns) + _GAP <= console.width:
        grid = Table.grid(padding=(0, _GAP))
        grid.add_row(*columns)
        console.print(grid)
    else:
        console.print(*columns, sep="\n")
    for each in trial.messages:
        print_table(_fields(each), console)
    if trial.stages is not None:
        print_table(stage_table(trial.stages), console)
    print_table(_collections(trial.processes), console)
    if trial.pauses:
        print_table(_pauses(trial.pauses), console)
    console.print()
    console.print(Text("Collectors as read back while their policy was in force", style="bold"))
    print_pairs([(process.role, _state_words(process)) for process in trial.processes], console)


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


def _column(chosen: list[str], subjects: dict[str, list[str]], trial: TrialResult) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    for subject in chosen:
        grid.add_row(Text(subject, style="bold"))
        for name in subjects[subject]:
            unit = METRICS[name].unit if name in METRICS else ""
            grid.add_row(Text(f"  {name}"), Text(_value(trial.metrics[name], unit)))
    return grid


def _value(value: float | None, unit: str) -> str:
    shown = fmt.with_unit(value, unit)
    # "num_steps 303 steps" would say it twice.
    return shown.removesuffix(f" {unit}") if unit in _COUNTED else shown


def _header(trial: TrialResult) -> list[tuple[str, str]]:
    pairs = [
        ("not to be used", trial.invalid),
        (
            "cell",
            ", ".join(
                f"{axis} {value}" for axis, value in worth_mentioning(values(trial.cell)).items()
            ),
        ),
        (
            "device",
            "modelled: times hold for the model, the host path is the real one"
            if trial.cell.device == "modelled"
            else "",
        ),
        ("trial", f"mode {trial.mode}, seed {trial.seed}, {fmt.seconds(trial.wall_seconds)}"),
        ("arrivals", arrival_words(trial.delivered)),
        ("steady state", steady_words(trial.steady_state)),
        (
            "engine",
            ", ".join(f"{name} {fmt.setting(value)}" for name, value in trial.engine_state.items()),
        ),
        (
            "by hand",
            "; ".join(
                f"{fmt.count(call.count)} × gen {call.generation}, {call.file}:{call.line} "
                f"in {call.function}"
                for call in trial.collector_calls
            ),
        ),
        ("interpreter", trial.interpreter),
        ("code", trial.code_commit),
        ("tokens", trial.tokens_sha256[:12]),
        ("text", trial.text_sha256[:12]),
    ]
    return [(label, words) for label, words in pairs if words]


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


def _collections(processes: list[ProcessResult]) -> PlainTable:
    def row(process: ProcessResult) -> Row:
        return (
            process.role,
            collections_words(process.collections),
            "/".join(fmt.number(pause * 1e3) for pause in process.pause_seconds),
            fmt.number(process.max_pause_seconds * 1e3),
            fmt.number(process.full_pass_seconds * 1e3),
        )

    dropped = sum(process.probe_dropped for process in processes)
    return PlainTable(
        "Collections by process, g0/g1/g2",
        ("process", "number", "pause\nms", "longest\nms", "full pass\nms"),
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
