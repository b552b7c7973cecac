"""What a gate is asked for."""

from pathlib import Path
from typing import Annotated, ClassVar

from harness.axes import Value
from harness.tracking.gate.trees import WORK_TREE
from harness.verbs.request import Flag, TimedRequest


class GateRequest(TimedRequest, frozen=True, kw_only=True):
    """``base`` and ``head``: commits; HEAD is the work tree as it stands unless it is given.

    ``until_precise``, ``tolerance``: in per cent; ``budget``: seconds.
    """

    defaults: ClassVar[dict[str, list[Value]]] = {
        "workload": ["opt125m-48-500"],
        "device": ["null"],
        "gc": ["freeze"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {"release": [""], "python": [""]}

    base: str
    head: str = WORK_TREE
    repo: Annotated[
        Path,
        Flag(
            "The checkout with both commits.  [default: the current folder]",
            section="Options",
            is_main=True,
        ),
    ] = Path()
    exact_only: Annotated[
        bool, Flag("Judge by exact counts alone, not by times.", section="Options", is_main=True)
    ] = False
    instructions: Annotated[
        bool,
        Flag("Count machine instructions, too, under valgrind.", section="Options", is_main=True),
    ] = False
    allow_uncovered: Annotated[
        bool, Flag("Judge a change though functions that it touches were run by no cell.")
    ] = False
    rounds: Annotated[
        int, Flag("Timed rounds, at least; --exact-only times nothing.", is_main=True, least=1)
    ] = 7
    until_precise: Annotated[
        float,
        Flag("Add rounds until each interval is within ± PCT.", metavar="PCT", above=0, most=99),
    ] = 1.0
    budget: Annotated[
        float,
        Flag(
            "Time limit for timed rounds; --rounds are run whatever they take.",
            metavar="SECONDS",
            least=0,
            most=10**6,
        ),
    ] = 60.0
    tolerance: Annotated[
        float,
        Flag(
            "An interval of times within ± PCT is called `same`.", metavar="PCT", above=0, most=99
        ),
    ] = 3.0
