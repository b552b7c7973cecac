"""``gcbench advise --models``: from which batch, heap and model on a change of the host matters."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from engines.builtin.device.profile import load_profile
from harness.axes import Cell
from harness.cli.exit_codes import ExitCode
from harness.cli.say import say
from harness.cli.session import Session
from harness.cli.tell import refuse_files, tell
from harness.experiment.crossover import (
    LATENCIES,
    CrossoverResult,
    Place,
    constant_steps,
    model_steps,
    worth_checking,
)
from harness.experiment.crossover_run import FIXED, Bench, CrossoverRun, label, refuse_unequal
from harness.experiment.result import ExperimentResult
from harness.experiment.store import write_json
from harness.machine.interrupts import held_interrupts
from harness.result.result import RESULT_FILE

MODELS = [
    "opt-125m-h200",
    "llama-3-8b-h200",
    "llama-3-70b-fp8-4xh100",
    "qwen3-235b-fp8-4xh100",
    "deepseek-v3-8xh200",
]

_REQUESTS = 4
"""Requests for each place in the batch, so that most of them begin while it is full."""


def advise_models(flags: dict[str, Any]) -> ExitCode:
    """Measure the host path alone, work out what each model's step leaves of the difference, and
    check some of that on a modelled device.
    """
    models, step_ms, image, rounds, num_checks = (
        flags.pop(name) for name in ("models", "step_ms", "image_path", "rounds", "num_checks")
    )
    tolerance = flags.pop("tolerance") / 100
    if not tolerance:
        raise ValueError("--tolerance 0: with --models it says what matters; give more than 0")
    refuse_files(image=image)
    profiles = {name: load_profile(name) for name in models}
    flags |= {axis: [value] for axis, value in FIXED.items()}
    sessions = _sessions(flags)
    first = next(iter(sessions.values()))

    console = Console(stderr=True, quiet=flags["quiet"], highlight=False, soft_wrap=True)
    refuse_unequal([cell for session in sessions.values() for cell in session.grid.cells])
    name = first.runner.new_name("crossover")
    benches = {batch: _bench(session, name, rounds) for batch, session in sessions.items()}
    run = CrossoverRun(benches, num_checks, console.print)
    first.look_around()
    run.measure()
    steps = {given: model_steps(each, run.schedules) for given, each in profiles.items()}
    run.check(
        worth_checking(run.points, steps, num_checks),
        profiles,
        lambda place: _bench(_modelled(flags, place, first), name, rounds),
    )
    cells = run.cells
    with held_interrupts():
        result = CrossoverResult(
            **first.about(name)
            | {"workloads": [each.runner.workloads[0] for each in sessions.values()]},
            axes=run.axes,
            baseline=label(cells[0], cells),
            tolerance=tolerance,
            rounds=rounds,
            points=run.points,
            models=[
                *steps.values(),
                *(constant_steps(each / 1e3, list(sessions)) for each in step_ms),
            ],
            checks=run.checks,
            notes=list(dict.fromkeys([*first.notes, *run.notes])),
            is_complete=run.is_complete,
        )
        path = first.runner.output / result.name / RESULT_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, result)
        tell(result, image=image, **first.told)
    if not run.is_complete:
        say("interrupted; what is said is of what had been measured")
        return ExitCode.INTERRUPTED
    return ExitCode.MEASURED if run.points else ExitCode.NOT_MEASURED


def _bench(session: Session, name: str, rounds: int) -> Bench:
    """A session's cells, compared as parts of the experiment of this name."""

    def compare(cells: list[Cell], part: str) -> ExperimentResult:
        plan = session.plan(cells, rounds=rounds, decide=LATENCIES["token"], name=f"{name}.{part}")
        return session.summarise(session.run(plan))

    return Bench(session.grid.cells, next(iter(session.runner.schedules.values())), compare)


def _sessions(flags: Mapping[str, Any]) -> dict[int, Session]:
    """By batch, the smallest first; they watch the machine together."""
    smallest, *others = sorted(flags["batch_size"])
    first = Session(_at(flags, smallest))
    return {smallest: first} | {
        batch: Session(_at(flags, batch) | {"json_path": None}, beside=first) for batch in others
    }


def _modelled(flags: Mapping[str, Any], place: Place, beside: Session) -> Session:
    """The same cells on the place's device."""
    of_place: dict[str, Any] = {
        "device": ["modelled"],
        "device_profile": [place.profile],
        "heap_objects": [place.heap_objects],
        "json_path": None,
    }
    return Session(_at(flags, place.batch_size) | of_place, beside=beside)


def _at(flags: Mapping[str, Any], batch_size: int) -> dict[str, Any]:
    """The flags of one batch, which requests keep full unless they say otherwise."""
    concurrency = max(1, batch_size)  # a batch of none is refused for what it is
    return dict(flags) | {
        "batch_size": [batch_size],
        "num_requests": flags["num_requests"] or _REQUESTS * concurrency,
        "arrivals": flags["arrivals"] or f"closed_loop:{concurrency}",
    }
