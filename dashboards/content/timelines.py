"""Timelines: the steps of a trial, with the collections that fell into them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dashboards.names import Names
from harness import format as fmt
from harness.axes import values, worth_mentioning
from harness.experiment.store import read_rows, read_trial
from harness.files import StoreError
from harness.tracking.folders import down_to
from harness.trial.recorder import STEP_COLUMNS
from harness.trial.spec import TrialResult

STEP_PHASES = STEP_COLUMNS[1 : STEP_COLUMNS.index("delivered")]
MOST_STEPS = 20_000
"""Of a longer trial the first ones are drawn."""

_NEEDED = {"start", *STEP_PHASES, "num_rows"}
_NEEDED_OF_COLLECTIONS = {"generation", "start_ns", "duration_ns", "process"}

StepColumns = dict[str, NDArray[Any]]


class Timeline(NamedTuple):
    """``data``: what the page's script draws, in milliseconds from the first step's start."""

    page: str
    experiment: str
    title: str
    sentence: str
    about: list[tuple[str, str]]
    longest: list[tuple[str, ...]]
    data: dict[str, Any]


def timelines(root: Path, most: int, problems: list[str]) -> tuple[list[Timeline], int]:
    """One for each cell of each experiment, the newest experiments first; and how many are left.

    The trial taken is the first timed one that has its rows.
    """
    names, found = Names(), list[Timeline]()
    chosen = [
        steps
        for folder in sorted(_folders(root, problems), key=lambda path: path.name, reverse=True)
        for steps in _one_a_cell(folder, problems)
    ]
    for steps in chosen[:most]:
        try:
            found.append(_timeline(steps, names))
        except (StoreError, ValueError) as problem:
            problems.append(f"{problem}; its timeline is left out")
    return found, max(0, len(chosen) - most)


def _folders(root: Path, problems: list[str]) -> list[Path]:
    return [folder for folder in down_to(root, 2, problems) if (folder / "rows").is_dir()]


def _one_a_cell(folder: Path, problems: list[str]) -> list[Path]:
    try:
        paths = sorted((folder / "rows").glob("*-timing-steps.parquet"))
    except OSError as error:
        problems.append(f"{folder / 'rows'} cannot be read: {error.strerror or error}")
        return []
    return sorted({path.name.split("-")[2]: path for path in reversed(paths)}.values())


def _timeline(path: Path, names: Names) -> Timeline:
    key, folder = path.name.removesuffix("-steps.parquet"), path.parent.parent
    steps = _checked(read_rows(path), _NEEDED, path)
    other = path.with_name(f"{key}-collections.parquet")
    collections = _checked(read_rows(other), _NEEDED_OF_COLLECTIONS, other)
    _, result = read_trial(folder / "trials" / f"{key}.json")
    if not isinstance(result, TrialResult):
        raise StoreError(f"{folder / 'trials' / key}.json is of a trial that failed")
    if not len(steps["start"]):
        raise StoreError(f"{path} holds no steps")
    shown = {name: column[:MOST_STEPS] for name, column in steps.items()}
    start, end = shown["start"], shown[STEP_PHASES[-1]]
    began = int(start[0])
    begins = collections["start_ns"]
    inside = (begins + collections["duration_ns"] >= began) & (begins <= int(end[-1]))
    events = {name: column[inside] for name, column in collections.items()}
    length = end - start
    roles = [process.role for process in result.processes]
    cut = (
        f" (the first {MOST_STEPS:,} of {len(steps['start']):,})"
        if len(start) < len(steps["start"])
        else ""
    )
    cell = result.cell
    axes = (cell.engine, cell.release, cell.representation, cell.delivery, cell.gc)
    return Timeline(
        page=names.of(f"{folder.name}-{key}"),
        experiment=folder.name,
        title=" · ".join(axis for axis in axes if axis),
        sentence=_sentence(length, events, int(end[-1]) - began, cut),
        about=[
            ("experiment", folder.name),
            ("trial", key),
            (
                "cell",
                ", ".join(
                    f"{axis} {value}" for axis, value in worth_mentioning(values(cell)).items()
                ),
            ),
            ("interpreter", result.interpreter),
            ("commit", result.code_commit[:12]),
            ("invalid", result.invalid),
        ],
        longest=_longest(shown, length, events, roles),
        data={
            "start": _ms(start - began),
            "length": _ms(length),
            "phases": {
                name: _ms(shown[name] - shown[before])
                for before, name in zip(("start", *STEP_PHASES), STEP_PHASES, strict=False)
            },
            "rows": shown["num_rows"].tolist(),
            "collections": {
                "start": _ms(events["start_ns"] - began),
                "length": _ms(events["duration_ns"]),
                "generation": events["generation"].tolist(),
                "process": events["process"].tolist(),
            },
            "roles": roles,
        },
    )


def _checked(columns: StepColumns, needed: set[str], path: Path) -> StepColumns:
    if missing := sorted(needed - columns.keys()):
        raise StoreError(f"{path} has no column {missing[0]}")
    for name in needed:
        if columns[name].dtype.kind not in "iu":
            raise StoreError(f"{path} has column {name} of {columns[name].dtype}, not of integers")
    return {name: columns[name].astype(np.int64) for name in columns if name in needed}


def _ms(ns: NDArray[Any]) -> list[float]:
    rounded: list[float] = np.round(ns / 1e6, 4).tolist()
    return rounded


def _sentence(length: NDArray[Any], events: StepColumns, window: int, cut: str) -> str:
    counts = [int((events["generation"] == generation).sum()) for generation in range(3)]
    pauses = int(events["duration_ns"].sum())
    longest = int(events["duration_ns"].max(initial=0))
    words = f"{len(length):,} steps{cut} in {fmt.seconds(window / 1e9)}, the median one "
    words += f"{fmt.seconds(float(np.median(length)) / 1e9)}. "
    if not sum(counts):
        return words + "No collections."
    return words + (
        f"{sum(counts):,} collections ({'/'.join(f'{count:,}' for count in counts)} of generation "
        f"0/1/2) took {fmt.seconds(pauses / 1e9)}, {fmt.percent(pauses / max(1, window))} of the "
        f"time; the longest {fmt.seconds(longest / 1e9)}."
    )


def _longest(
    steps: StepColumns, length: NDArray[Any], events: StepColumns, roles: list[str]
) -> list[tuple[str, ...]]:
    """The ten longest steps, each with what was collected in it."""
    table: list[tuple[str, ...]] = []
    ends = events["start_ns"] + events["duration_ns"]
    for place in np.argsort(-length, kind="stable")[:10]:
        start, end = int(steps["start"][place]), int(steps[STEP_PHASES[-1]][place])
        within = (events["start_ns"] < end) & (ends > start)
        parts = []
        for process in sorted({int(number) for number in events["process"][within]}):
            mine = within & (events["process"] == process)
            counts = [
                int((events["generation"][mine] == generation).sum()) for generation in range(3)
            ]
            role = f"{roles[process]} " if len(roles) > 1 and 0 <= process < len(roles) else ""
            took = float(events["duration_ns"][mine].sum()) / 1e9
            parts.append(f"{role}{'/'.join(map(str, counts))}, {fmt.seconds(took)}")
        table.append(
            (
                f"{place:,}",
                f"{int(steps['num_rows'][place]):,}",
                fmt.seconds(float(length[place]) / 1e9),
                "; ".join(parts) or "none",
            )
        )
    return table
