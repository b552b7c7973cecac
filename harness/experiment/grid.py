"""From axes to cells: crosses them, leaves out what contradicts itself, groups what compares."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import NamedTuple

import msgspec

from engines.nearest import nearest
from engines.protocol import ContradictionError, EngineClass, Traits
from engines.registry import ENGINES
from harness.axes import AXES, OF_EVERY_ENGINE, Axis, Cell
from harness.collector.policy import parse_policy
from harness.trial.arrivals import comes_by_itself
from harness.trial.engine_config import engine_config, unsized_config
from workloads.schedule import Schedule

_COMPLETED = ("device", "device_profile", "representation")
"""What an engine fills in where it was left open."""

_OF_WORKER_PROCESSES = (AXES["wire"], AXES["wire_spin"])
"""What says nothing where the runner is in the engine's process."""

_MOST = 2**31 - 1
"""Of an axis that counts: engines keep it in 32 bits."""

GROUPED_BY = ("workload", "tokenizer", "model", "device", "device_profile", "python")


class Grid(NamedTuple):
    """Cells in the order of the axes; ``left_out`` says why some combinations are not there."""

    cells: list[Cell]
    left_out: list[str]


def cross(
    axes: Mapping[str, Sequence[str | int]],
    schedules: Mapping[str, Schedule],
    models: Mapping[str, str],
) -> Grid:
    """All combinations that can be run; ``models`` says which model a workload suits.

    An axis that is left out of ``axes`` has its default.

    Raises ValueError where none can be run, or a name is unknown.
    """
    cells: list[Cell] = []
    left_out: list[str] = []
    given = {name: axes[name] for name in AXES if name in axes}
    if empty := next((AXES[name].flag for name, asked in given.items() if not asked), ""):
        raise ValueError(f"{empty}: has no value to measure")
    for point in product(*given.values()):
        cell = msgspec.convert(dict(zip(given, point, strict=True)), Cell)
        schedule = schedules[cell.workload]
        _check_numbers(cell, schedule)
        parse_policy(cell.gc)
        engine: EngineClass = ENGINES.load(cell.engine)
        if why := _not_taken(cell, engine):
            left_out.append(why)
            continue
        cell = msgspec.structs.replace(cell, model=cell.model or models[cell.workload])
        try:
            config = engine.complete(engine_config(cell, schedule))
        except ContradictionError as error:
            left_out.append(str(error))
            continue
        completed = {name: getattr(config, name) for name in _COMPLETED}
        cell = msgspec.structs.replace(cell, **completed)
        if why := _contradiction(cell, engine, schedule):
            left_out.append(why)
        else:
            cells.append(_as_it_runs(cell))
    if not cells:
        raise ValueError(left_out[0])
    for axis in _OF_WORKER_PROCESSES:
        asked = axes.get(axis.name, [axis.default])
        if not any(getattr(cell, axis.name) in asked for cell in cells):
            raise ValueError(
                f"{axis.said(*asked)}: nothing crosses with --worker "
                f"{cells[0].worker}; use --worker process"
            )
    return Grid(list(dict.fromkeys(cells)), list(dict.fromkeys(left_out)))


def _as_it_runs(cell: Cell) -> Cell:
    """The cell, with no wire of its own where there is no worker process to reach."""
    if cell.worker != AXES["worker"].default:
        return cell
    defaults = {axis.name: axis.default for axis in _OF_WORKER_PROCESSES}
    return msgspec.structs.replace(cell, **defaults)


def _check_numbers(cell: Cell, schedule: Schedule) -> None:
    for axis in AXES.values():
        value = getattr(cell, axis.name)
        if isinstance(value, int) and value < axis.least:
            raise ValueError(f"{axis.said(value)}: must be {axis.least} or more")
        if isinstance(value, int) and value > _MOST:
            raise ValueError(f"{axis.said(value)}: must be {_MOST:,} or less")
    if 0 < cell.max_model_len < schedule.max_model_len:
        raise ValueError(
            f"--axis max-model-len={cell.max_model_len}: the longest request of "
            f"{cell.workload} has "
            f"{schedule.max_model_len} tokens, prompt and output together"
        )


def _contradiction(cell: Cell, engine: EngineClass, schedule: Schedule) -> str:
    if schedule.stop and cell.detokenizer == "none":
        return (
            "--axis stop: there is no text with --axis detokenizer=none; use byte_table or "
            "decode_stream"
        )
    if traits(cell).needs_rehearsal and comes_by_itself(schedule):
        return (
            f"--axis scheduler={cell.scheduler}: requests of {cell.workload} come by the "
            "clock, so no "
            "two runs are scheduled alike; use --axis arrivals=all_at_once or closed_loop:N"
        )
    if "on_wait" in parse_policy(cell.gc) and not engine.has_wait_hook:
        return f"--gc {cell.gc}: engine {cell.engine} does not say when its device is busy"
    return ""


def takes(engine: EngineClass, axis: Axis) -> bool:
    """Whether an engine can be given another value than the default of an axis."""
    return not axis.decides or axis.name in OF_EVERY_ENGINE | engine.axes


def _not_taken(cell: Cell, engine: EngineClass) -> str:
    """The first axis on which the cell asks its engine for what only others have, in a sentence."""
    for axis in AXES.values():
        value = getattr(cell, axis.name)
        if value != axis.default and not takes(engine, axis):
            theirs = " and ".join(_engines_with(axis))
            return f"{axis.said(value)}: is of engine {theirs}; leave it out with {cell.engine}"
    return ""


def _engines_with(axis: Axis) -> Iterator[str]:
    for name in ENGINES.names():
        with suppress(ValueError):  # of another package, and broken
            if takes(ENGINES.load(name), axis):
                yield name


def traits(cell: Cell) -> Traits:
    """What the engine of a cell can do, configured as the cell says."""
    engine: EngineClass = ENGINES.load(cell.engine)
    return engine.traits(unsized_config(cell))


def steps_alike(cells: Sequence[Cell]) -> bool:
    """Whether a step of each is as much work, so that times per step have a ratio."""
    return len({cell.num_scheduler_steps for cell in cells}) <= 1


def group_key(cell: Cell) -> tuple[str, ...]:
    """What the cells of one group have in common: workload, model, device and interpreter."""
    return tuple(getattr(cell, axis) for axis in GROUPED_BY)


def groups(cells: Sequence[Cell]) -> list[int]:
    """The group of each cell, by number."""
    keys = [group_key(cell) for cell in cells]
    order = list(dict.fromkeys(keys))
    return [order.index(key) for key in keys]


def varying(cells: Sequence[Cell]) -> list[str]:
    """The axes in which the cells differ, in order."""
    fields = Cell.__struct_fields__  # copies differ, too
    return [axis for axis in fields if len({getattr(cell, axis) for cell in cells}) > 1]


def baselines(cells: Sequence[Cell], wanted: Mapping[str, str]) -> list[int]:
    """Each group's baseline by index: its first cell, or the first with the ``wanted`` values.

    Raises ValueError where a group has none such.
    """
    for axis in wanted:
        if axis not in AXES:
            near = ", ".join(nearest(axis, AXES))
            raise ValueError(f"--baseline: there is no axis {axis!r}; did you mean {near}?")
    found: dict[int, int] = {}
    for index, (cell, group) in enumerate(zip(cells, groups(cells), strict=True)):
        if all(str(getattr(cell, axis)) == value for axis, value in wanted.items()):
            found.setdefault(group, index)
    if len(found) < len(set(groups(cells))):
        asked = ", ".join(f"{axis}={value}" for axis, value in wanted.items())
        raise ValueError(f"--baseline {asked}: no cell of the grid has these values")
    return [found[group] for group in sorted(found)]
