"""Equal cells against each other: the smallest change that a comparison can find here."""

from typing import Annotated, ClassVar

from msgspec.structs import replace

from harness.axes import AXES, Value
from harness.experiment.known_noise import keep_noise
from harness.experiment.noise_result import NoiseResult, noise_result
from harness.result.result import keep_result
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, SpreadRequest
from harness.verbs.session import Session

_MATTER = ("workload", "device", "gc", "heap_objects")
"""The axes that change how noisy a machine is."""


class NoiseRequest(SpreadRequest, frozen=True, kw_only=True):
    """One cell."""

    decided: ClassVar[dict[str, list[Value]]] = {
        name: [axis.default] for name, axis in AXES.items() if name not in _MATTER
    }

    rounds: Annotated[
        int, Flag("Interleaved rounds of them.", is_main=True, least=FEWEST_PAIRS)
    ] = 14
    resume: Annotated[
        str, Flag("Continue interrupted rounds.", section="Output", metavar="NAME")
    ] = ""


def measure_noise(request: NoiseRequest, caller: Caller) -> NoiseResult:
    """Measure it; of a cluster that of each node, which is kept where results are."""
    session = Session(request, caller, is_of_noise=True)
    cells = [replace(session.cell, copy=copy) for copy in (0, 1)]
    plan = session.plan(cells, rounds=request.rounds * session.machines, resume=request.resume)
    ran = session.run(plan)
    found = noise_result(ran, session.summarise(ran), is_resumed=bool(request.resume))
    keep_result(request.output, found)
    if found.is_complete and found.nodes and (of := caller.cluster(request.cluster).identity):
        keep_noise(request.output, found.metric, of, found.nodes)
    return found
