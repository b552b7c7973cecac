"""What the API layer costs: one schedule in process and over HTTP, on the same engine."""

from typing import Annotated, ClassVar

from harness.axes import AXES, Value
from harness.experiment.run import INTERRUPTED_NOTE
from harness.load.both_ways import HttpResult
from harness.load.http_cost import measure_both_ways
from harness.load.served import SERVER_DECIDES
from harness.machine.interrupts import held_interrupts
from harness.result.result import keep_result
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, TimedRequest
from harness.verbs.session import Session


class HttpCostRequest(TimedRequest, frozen=True, kw_only=True):
    """A server of one's own for each cell; its front end makes the outputs."""

    defaults: ClassVar[dict[str, list[Value]]] = {
        "representation": ["list_of_lists"],
        "delivery": ["per_request"],
        "detokenizer": ["decode_stream"],
        "device_profile": ["llama-3-8b-h200"],
        "batch_size": [32],
    }
    decided: ClassVar[dict[str, list[Value]]] = {
        axis: [AXES[axis].default] for axis in SERVER_DECIDES if axis != "workload"
    } | {"output_processing": ["process"]}

    rounds: Annotated[int, Flag("Rounds of each cell both ways.", least=1, most=10_000)] = 7


def measure_http_cost(request: HttpCostRequest, caller: Caller) -> HttpResult:
    """Measure it. Raises EngineDeadError where a server does not become ready."""
    session = Session(request, caller)
    session.look_around()
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("http")
    with caller.counting("both ways", request.rounds * len(cells)) as count:
        cost = measure_both_ways(
            runner,
            cells,
            request.rounds,
            waits=count.say,
            on_measured=lambda label: count.advance(f"both ways: {label}"),
        )
    with held_interrupts():
        result = HttpResult(
            **session.about(name),
            rounds=request.rounds,
            cells=cost.cells,
            missing=cost.missing,
            notes=[
                *session.notes,
                *cost.notes,
                *[INTERRUPTED_NOTE] * cost.is_interrupted,
                *runner.lease.notes,
            ],
            is_complete=not cost.is_interrupted,
        )
        keep_result(request.output, result)
    return result
