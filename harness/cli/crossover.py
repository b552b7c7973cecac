"""``gcbench crossover``: from which batch, heap and model on a change of the host path matters."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console

from engines.builtin.device.profile import load_profile
from harness.axes import AXES, Cell, values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.options import (
    PERCENT,
    CommaList,
    Number,
    axis_options,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.say import say
from harness.cli.session import Session, checked, command_line
from harness.experiment.crossover import (
    LATENCIES,
    Check,
    CrossoverResult,
    Place,
    Point,
    between,
    constant_steps,
    host_changes,
    model_steps,
    of,
    worth_checking,
)
from harness.experiment.grid import varying
from harness.experiment.result import ExperimentResult, cell_id
from harness.experiment.run import INTERRUPTED
from harness.experiment.store import write_json
from harness.files import write_output
from harness.machine.describe import describe
from harness.machine.interrupts import held_interrupts
from harness.report.crossover import crossover_answer, crossover_header, crossover_tables
from harness.report.crossover_image import crossover_image
from harness.report.image_file import image_suffix
from harness.report.terminal import make_console, print_lines, print_pairs, print_table

EXAMPLES = """
\b
Examples:
  gcbench crossover
      for which models and batches does it matter how sampled tokens are kept
  gcbench crossover --representation flat_arrays --gc default,freeze
      the same question about the collector
  gcbench crossover --engine vllm-hostpath --release 0.33.0 --gc default,freeze
      of vLLM's host path, with no GPU
  gcbench crossover --step-ms 18 --image map.png
      for a model whose step takes 18 ms; and a picture
"""

_FIXED = {
    "device": "null",
    "device_profile": "",
    "output_processing": "inline",
    "num_scheduler_steps": 1,
    "worker": "in-process",
    "wire": AXES["wire"].default,
    "wire_spin": AXES["wire_spin"].default,
    "engine_core": "in-process",
}
"""Host and device take turns in one process: only then does a step's time add to the host's."""

_MODELS = ["opt-125m-h200", "llama-3-8b-h200", "llama-3-70b-fp8-4xh100", "qwen3-235b-fp8-4xh100",
           "deepseek-v3-8xh200"]  # fmt: skip
_PLACES = ("batch_size", "heap_objects")
_REQUESTS = 4
"""Requests for each place in the batch, so that most of them begin while it is full."""
_STEPS_MS = Number(0, 10**6)


class _Measured(NamedTuple):
    """What the grid gave. ``workloads`` and ``schedules``: by batch."""

    points: list[Point]
    sessions: dict[int, Session]
    results: list[ExperimentResult]


@click.command(epilog=EXAMPLES)
@axis_options(
    without=tuple(_FIXED),
    workload=["churn"],
    representation=["list_of_lists", "flat_arrays"],
    delivery=["per_request", "columnar"],
    batch_size=[1, 8, 32, 256, 1024],
    heap_objects=[0, 700_000],
)
@workload_options
@click.option(
    "--device-profile",
    "profiles",
    type=CommaList(),
    default=_MODELS,
    metavar="LIST",
    help=f"Modelled devices: names or .toml files. [default: {','.join(_MODELS)}]",
)
@click.option(
    "--step-ms",
    type=_STEPS_MS,
    multiple=True,
    metavar="MS",
    help="A model whose step takes so long; may be repeated.",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 10_000),
    default=5,
    show_default=True,
    help="Interleaved rounds at each point.",
)
@click.option(
    "--tolerance",
    type=PERCENT,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="What matters: a change of at least so much.",
)
@click.option(
    "--check",
    "num_checks",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    help="Predictions to try on a modelled device, at a batch between two others.",
)
@click.option("--image", "image_path", metavar="FILE", help="Draw the map, .png or .svg.")
@wait_quiet_option
@run_options
@click.pass_context
def crossover(
    ctx: click.Context,
    /,
    *,
    profiles: list[str],
    step_ms: tuple[float, ...],
    rounds: int,
    num_checks: int,
    image_path: str | None,
    **flags: Any,
) -> None:
    """Say for which batch, heap and model it matters what the host does.

    Measures the host path alone at each batch and heap, works out what a device's step leaves of
    the difference, and checks some of that on a modelled device. The first cell is the baseline.
    """
    tolerance = flags.pop("tolerance") / 100
    suffix = image_suffix(Path(image_path)) if image_path else ""
    checked(image_path, "--image")
    loaded = {name: load_profile(name) for name in profiles}
    batches, quiet = sorted(flags["batch_size"]), flags["quiet"]
    flags |= {axis: [value] for axis, value in _FIXED.items()}
    first = Session(_at(flags, batches[0]) | {"json_path": flags["json_path"]})
    _refuse_unequal(first.grid.cells)
    name = first.runner.new_name("crossover")
    first.look_around()
    steps = _Steps(len(batches) * len(flags["heap_objects"]) + num_checks, quiet)
    measured = _Measured([], {}, [])
    checks: list[Check] = []
    is_complete = _measure(measured, flags, batches, rounds, name, steps)
    schedules = {
        batch: next(iter(session.runner.schedules.values()))
        for batch, session in measured.sessions.items()
    }
    of_profiles = {given: model_steps(each, schedules) for given, each in loaded.items()}
    if is_complete:
        for place in worth_checking(measured.points, of_profiles, num_checks):
            found, is_complete = _checked(place, measured.points, flags, rounds, name, steps)
            checks += found
            if not is_complete:
                break
    cells = [cell for session in measured.sessions.values() for cell in session.grid.cells]
    with held_interrupts():
        result = CrossoverResult(
            name=name,
            command=command_line(),
            machine=describe(),
            workloads=[session.runner.workloads[0] for session in measured.sessions.values()],
            axes={axis: value for axis, value in worth_mentioning(values(cells[0])).items()
                  if axis not in {*varying(cells), *_FIXED, "workload"}} if cells else {},
            baseline=_label(cells[0], cells) if cells else "",
            tolerance=tolerance,
            rounds=rounds,
            points=measured.points,
            models=[*of_profiles.values(),
                    *(constant_steps(each / 1e3, list(schedules)) for each in step_ms)],
            checks=checks,
            notes=_notes(first, measured, is_complete),
            surroundings=first.surroundings,
            is_complete=is_complete,
        )  # fmt: skip
        _say(first, result, image_path, suffix)
    if not is_complete:
        say("interrupted; what is said is of what had been measured")
        ctx.exit(ExitCode.INTERRUPTED)
    ctx.exit(ExitCode.MEASURED if measured.points else ExitCode.NOT_MEASURED)


class _Steps:
    """Says which of how many points comes, where each has a bar of its own."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet, highlight=False)
        self._done, self._total = 0, total

    def say(self, words: str) -> None:
        """The next one."""
        self._done += 1
        self._console.print(f"{self._done} of {self._total}: {words}")


def _at(flags: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """The flags of one batch, which requests keep full unless they say otherwise."""
    concurrency = max(1, batch_size)  # a batch of none is refused for what it is
    return dict(flags) | {
        "batch_size": [batch_size],
        "num_requests": flags["num_requests"] or _REQUESTS * concurrency,
        "arrivals": flags["arrivals"] or f"closed_loop:{concurrency}",
        "json_path": None,
    }


def _refuse_unequal(cells: Sequence[Cell]) -> None:
    """Raises ValueError where there is nothing to compare, or what does not compare."""
    axes = [axis for axis in varying(cells) if axis not in _PLACES]
    if not axes:
        raise ValueError("there is nothing to compare; give an axis two values, such as --gc")
    if unequal := [axis for axis in axes if axis in ("workload", "model", "python", "tokenizer")]:
        flag = AXES[unequal[0]].flag
        raise ValueError(f"{flag}: takes one value here; cells of several do not compare")


def _measure(
    measured: _Measured,
    flags: Mapping[str, Any],
    batches: Sequence[int],
    rounds: int,
    name: str,
    steps: _Steps,
) -> bool:
    """Every batch and heap, the candidates in turns with their baseline; whether it came through.

    A point is kept as an experiment of its own, in the order in which they are measured.
    """
    for batch in batches:
        session = Session(_at(flags, batch))
        measured.sessions[batch] = session
        for heap in flags["heap_objects"]:
            steps.say(f"batch {batch:,}, {heap:,} heap objects")
            cells = [cell for cell in session.grid.cells if cell.heap_objects == heap]
            part = f"{name}.{len(measured.results) + 1}"
            result = _compared(session, cells, rounds, part)
            measured.results.append(result)
            measured.points.extend(_points(result, cells, batch, heap))
            if not result.is_complete:
                return False
    return True


def _compared(session: Session, cells: list[Cell], rounds: int, name: str) -> ExperimentResult:
    plan = session.plan(cells, rounds=rounds, decide=LATENCIES["token"], name=name)
    return session.summarise(session.run(plan))


def _points(
    result: ExperimentResult, cells: Sequence[Cell], batch: int, heap: int
) -> Iterator[Point]:
    """A point for each candidate that has enough rounds."""
    by_id = {cell.id: cell for cell in result.cells}
    baseline, *others = (by_id.get(cell_id(cell, varying(cells))) for cell in cells)
    for cell, other in zip(cells[1:], others, strict=True):
        if baseline is not None and other is not None and (found := host_changes(baseline, other)):
            yield Point(
                candidate=_label(cell, cells), batch_size=batch, heap_objects=heap, latencies=found
            )


def _label(cell: Cell, cells: Sequence[Cell]) -> str:
    """What a cell is called, wherever it stands."""
    return cell_id(cell, [axis for axis in varying(cells) if axis not in _PLACES])


def _checked(
    place: Place,
    points: Sequence[Point],
    flags: Mapping[str, Any],
    rounds: int,
    name: str,
    steps: _Steps,
) -> tuple[list[Check], bool]:
    """Predictions beside a fresh measurement, one a candidate, and whether that came through."""
    batch, heap, profile = place
    steps.say(f"checking batch {batch:,} on {profile}")
    modelled = {"device": ["modelled"], "device_profile": [profile], "heap_objects": [heap]}
    session = Session(_at(flags, batch) | modelled)
    baseline, *others = cells = session.grid.cells
    schedule = session.runner.schedules[baseline.workload]
    model = model_steps(load_profile(profile), {batch: schedule})
    result = _compared(session, cells, rounds, f"{name}.check-{batch}-{model.name}")
    measured = {each.candidate: each for each in result.comparisons}
    checks = [
        Check(
            candidate=candidate,
            batch_size=batch,
            heap_objects=heap,
            model=model.name,
            predicted=host.on_device(model.token[batch]),
            measured=measured.get(candidate),
        )
        for candidate in (_label(cell, cells) for cell in others)
        if (host := between(of(points, candidate, heap), "token", batch))
    ]
    return checks, result.is_complete


def _notes(first: Session, measured: _Measured, is_complete: bool) -> list[str]:
    """What was left out and what failed, each once."""
    said = [*first.notes, *(f"No result: {each.reason}." for result in measured.results
                            for each in result.failures)]  # fmt: skip
    said += [note for result in measured.results for note in result.notes]
    said += [] if is_complete else [INTERRUPTED]
    return list(dict.fromkeys(said))


def _say(session: Session, result: CrossoverResult, image_path: str | None, suffix: str) -> None:
    path = session.runner.output / result.name / "crossover.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, result)
    try:
        if image_path and result.points:
            write_output(image_path, crossover_image(result, suffix), "--image FILE")
        session.write_json(result)
    finally:
        if session.shows_tables:
            _show(result)


def _show(result: CrossoverResult) -> None:
    console = make_console()
    if result.points:
        print_lines("", crossover_answer(result), console, style="bold")
    for table in crossover_tables(result):
        print_table(table, console)
    print_lines("Notes", result.notes, console)
    console.print()
    print_pairs(crossover_header(result), console)
