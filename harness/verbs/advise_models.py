"""From which batch, heap and model on a change of the host path matters."""

from contextlib import suppress

from msgspec.structs import replace

from engines.builtin.device.profile import load_profile
from harness.axes import AXES, Cell, Value
from harness.experiment.crossover import (
    LATENCIES,
    CheckPlace,
    CrossoverResult,
    constant_steps,
    model_steps,
    worth_checking,
)
from harness.experiment.crossover_run import Bench, CrossoverRun, label, refuse_unequal
from harness.experiment.result import ExperimentResult
from harness.machine.interrupts import held_interrupts
from harness.result.result import keep_result
from harness.verbs.advise_request import AdviseRequest
from harness.verbs.caller import Caller
from harness.verbs.request import TimedRequest
from harness.verbs.session import Session

_REQUESTS = 4
"""Requests for each place in the batch, so that most of them begin while it is full."""
_ROUNDS = 5
_CHECKS = 1


def advise_models(request: AdviseRequest, caller: Caller) -> CrossoverResult:
    """Measure the host path alone, work out what each model's step leaves of the difference, and
    check some of that on a modelled device.
    """
    rounds, tolerance = request.rounds or _ROUNDS, request.tolerance / 100
    num_checks = _CHECKS if request.check is None else request.check
    profiles = {name.strip(): load_profile(name.strip()) for name in request.models.split(",")}
    step_ms = [_milliseconds(each) for each in request.step_ms]
    sessions = _sessions(request, caller)
    first = next(iter(sessions.values()))

    refuse_unequal([cell for session in sessions.values() for cell in session.grid.cells])
    name = first.runner.new_name("crossover")
    benches = {batch: _bench(session, name, rounds) for batch, session in sessions.items()}
    run = CrossoverRun(benches, num_checks, caller.say)
    first.look_around()
    run.measure()
    steps = {given: model_steps(each, run.schedules) for given, each in profiles.items()}
    run.check(
        worth_checking(run.points, steps, num_checks),
        profiles,
        lambda place: _bench(_modelled(request, place, first), name, rounds),
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
            code_commits=run.code_commits,
            notes=list(dict.fromkeys([*first.notes, *run.notes])),
            is_complete=run.is_complete,
        )
        keep_result(request.output, result)
    return result


def _bench(session: Session, name: str, rounds: int) -> Bench:
    """A session's cells, compared as parts of the experiment of this name."""

    def compare(cells: list[Cell], part: str) -> ExperimentResult:
        plan = session.plan(cells, rounds=rounds, decide=LATENCIES["token"], name=f"{name}.{part}")
        return session.summarise(session.run(plan))

    return Bench(session.grid.cells, next(iter(session.runner.schedules.values())), compare)


def _sessions(request: AdviseRequest, caller: Caller) -> dict[int, Session]:
    """By batch, the smallest first; they watch the machine together."""
    smallest, *others = sorted(int(batch) for batch in request.values("batch_size"))
    first = Session(_at(request, smallest), caller)
    return {smallest: first} | {
        batch: Session(_at(request, batch), caller, beside=first) for batch in others
    }


def _modelled(request: AdviseRequest, place: CheckPlace, beside: Session) -> Session:
    """The same cells on the place's device."""
    at = _at(request, place.batch_size)
    of_place: dict[str, list[Value]] = {
        "device": ["modelled"],
        "device_profile": [place.profile],
        "heap_objects": [place.heap_objects],
    }
    return Session(replace(at, axes=at.axes | of_place), beside.caller, beside=beside)


def _at(request: AdviseRequest, batch_size: int) -> TimedRequest:
    """The request at one batch, which requests keep full unless they say otherwise."""
    concurrency = max(1, batch_size)  # a batch of none is refused for what it is
    axes = {name: request.values(name) for name in AXES} | {"batch_size": [batch_size]}
    own = {name: getattr(request, name) for name in TimedRequest.__struct_fields__}
    own["num_requests"] = request.num_requests or _REQUESTS * concurrency
    own["arrivals"] = request.arrivals or f"closed_loop:{concurrency}"
    return TimedRequest(**own | {"axes": axes})


def _milliseconds(text: str) -> float:
    with suppress(ValueError):
        if 0 < (found := float(text)) <= 10**6:
            return found
    raise ValueError(f"--step-ms {text}: must be a number above 0 and at most 1,000,000")
