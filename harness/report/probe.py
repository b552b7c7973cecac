"""What `gcbench probe` shows: the answer in a sentence, collections by process, what it missed."""

from pathlib import Path

from harness import format as fmt
from harness.probed.result import NotProbed, ProbedProcess, ProbeResult
from harness.render.report import Listing, Report
from harness.render.table import PlainTable, Row
from harness.report.collection_words import kind_words

_MOST_PROCESSES, _MOST_LONG, _MOST_TYPES = 20, 10, 3


def describe_probe(result: ProbeResult) -> Report:
    """How long the collector stopped whom, and what was not seen."""
    answer, *more = _answer(result)
    return Report(
        heading="gcbench probe",
        name=result.name,
        answer=answer,
        tables=[*_tables(result), *_long_pauses(result)],
        sentences=[*more, *_own_cost(result)],
        lists=[Listing("What was missed", _notes(result), is_bad=True)],
    )


def _answer(result: ProbeResult) -> list[str]:
    """How long the collector stopped whom, and the longest stop."""
    paused = [each for each in result.processes if each.collections]
    if not paused:
        was = "was seen in" if any(each.unseen for each in result.processes) else "in"
        return [
            f"No collection {was} {_processes(_images(result.processes))} in "
            f"{fmt.seconds(result.wall_seconds)}."
        ]
    most = max(paused, key=lambda each: each.pause_seconds)
    longest, process, generation = max(
        (each.longest_pause_seconds, process, each.generation)
        for process in paused
        for each in process.generations
    )
    return [
        f"The collector ran {fmt.count(sum(each.collections for each in paused))} times in "
        f"{_processes(_images(paused))} in {fmt.seconds(result.wall_seconds)}.",
        f"It stopped {_named(most)} longest altogether: {fmt.seconds(most.pause_seconds)}, "
        f"{fmt.percent(most.pause_seconds / result.wall_seconds)} of the time.",
        f"The longest pause was {fmt.seconds(longest)}: "
        f"{kind_words(generation, process.python)} of {_named(process)}.",
    ]


def _own_cost(result: ProbeResult) -> list[str]:
    """What watching took; a result of before lacks it."""
    if result.own_cpu_seconds is None or result.own_peak_bytes is None:
        return []
    share = fmt.percent(result.own_cpu_seconds / result.wall_seconds)
    return [
        f"gcbench itself took {share} of a core and at most {result.own_peak_bytes / 1e6:,.0f} MB."
    ]


def _tables(result: ProbeResult) -> list[PlainTable]:
    """Collections by process and generation, those that were paused longest first."""
    ranked = sorted(result.processes, key=lambda each: -each.pause_seconds)
    shown = [each for each in ranked if each.collections][:_MOST_PROCESSES]
    left_out = _images(result.processes) - _images(shown)
    if not shown:
        return []
    return [
        PlainTable(
            "Collections by process and generation",
            (
                "process",
                "PID",
                "gen",
                "collec-\ntions",
                "paused",
                "share\nof time",
                "longest",
                "on a\ncore",
            ),
            [list(_rows(each, result.wall_seconds)) for each in shown],
            f"{_processes(left_out)} more, with fewer or no collections" if left_out else "",
        )
    ]


def _long_pauses(result: ProbeResult) -> list[PlainTable]:
    """Where the program was in its longest pauses, and what it had made since the one before."""
    groups: list[list[Row]] = []
    for each in result.long_pauses[:_MOST_LONG]:
        gen = kind_words(each.generation, each.python).removeprefix("generation ")
        where = f"{Path(each.file).name}:{each.line}, {each.function}" if each.line else "no Python"
        groups.append([(f"{each.process} ({each.pid})", gen, fmt.seconds(each.seconds), where)])
        for kind, count in each.objects[:_MOST_TYPES]:
            groups[-1].append(("", "", "", f"{fmt.count(count)} {kind.removeprefix('builtins.')}"))
    if not groups:
        return []
    columns = ("process", "gen", "paused", "line that ran, and young objects")
    return [PlainTable("What ran when long pauses began", columns, groups)]


def _notes(result: ProbeResult) -> list[str]:
    """Interpreters without the probe, lost moments, and whatever else was noticed."""
    notes = [_sentence(each) for each in result.not_probed]
    lost = sum(each.lost for process in result.processes for each in process.generations)
    if lost:
        notes.append(
            f"{fmt.count(lost)} collections came faster than they were read: they are counted, "
            "but when they were is not known."
        )
    return [*notes, *(_unseen(each) for each in result.processes if each.unseen), *result.notes]


def progress_line(processes: list[ProbedProcess], seconds: float) -> str:
    """How it stands while the command runs."""
    count = sum(each.collections for each in processes)
    longest = max(
        (each.longest_pause_seconds for process in processes for each in process.generations),
        default=0.0,
    )
    pause = sum(each.pause_seconds for each in processes)
    return (
        f"{fmt.seconds(seconds)}: {_processes(_images(processes))}, "
        f"{fmt.count(count)} collections, paused {fmt.seconds(pause)}, "
        f"longest {fmt.seconds(longest)}"
    )


def _rows(process: ProbedProcess, wall_seconds: float) -> list[Row]:
    rows: list[Row] = []
    for each in process.generations:
        if each.collections:
            on_a_core = min(1.0, each.cpu_seconds / each.pause_seconds)  # its stamps are wider
            rows.append(
                (
                    *(("", "") if rows else (process.name, _who(process))),
                    kind_words(each.generation, process.python).removeprefix("generation "),
                    fmt.count(each.collections),
                    fmt.seconds(each.pause_seconds),
                    fmt.percent(each.pause_seconds / wall_seconds),
                    fmt.seconds(each.longest_pause_seconds),
                    fmt.percent(on_a_core),
                )
            )
    return rows


def _sentence(each: NotProbed) -> str:
    return f"{each.name} ({each.pid}) was not probed, because {each.reason}."


def _unseen(process: ProbedProcess) -> str:
    return (
        f"{_named(process)} collected {fmt.count(process.unseen)} times more, as gc.get_stats() "
        "said at its exit: nothing is known of these, because it has emptied gc.callbacks."
    )


def _named(process: ProbedProcess) -> str:
    return f"{process.name} ({_who(process)})"


def _who(process: ProbedProcess) -> str:
    """Its PID, or how many are added up."""
    if process.images > 1:
        return f"{fmt.count(process.images)} of them"
    return str(process.pid) if process.pid else "unknown"


def _images(processes: list[ProbedProcess]) -> int:
    return sum(each.images for each in processes)


def _processes(number: int) -> str:
    return f"{fmt.count(number)} process{'es' if number != 1 else ''}"
