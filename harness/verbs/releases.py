"""vLLM's host path, release by release, with no GPU."""

from functools import partial
from typing import Annotated, ClassVar

from msgspec.structs import replace

from engines.vllm.releases import PINNED
from harness.axes import Value
from harness.experiment.plan import counting_modes
from harness.experiment.result import ExperimentResult
from harness.report.release_label import release_label
from harness.result.result import keep_result
from harness.trial.spec import Mode
from harness.verbs.caller import Caller
from harness.verbs.request import Flag, SpreadRequest
from harness.verbs.session import Session
from harness.verbs.vllm_versions import prepare_releases, wanted_releases

_COUNTING: tuple[Mode, ...] = ("counts", "tracked", "opcodes", "grid", "wire")


class ReleasesRequest(SpreadRequest, frozen=True, kw_only=True):
    """``versions``: releases and ranges of them; with ``paths`` the source trees to measure too.

    Without either it is the pinned release.
    """

    defaults: ClassVar[dict[str, list[Value]]] = {
        "workload": ["opt125m-48-300"],
        "device": ["null"],
        "gc": ["as_is", "freeze", "default"],
        "setup": ["shipped", "lean"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {
        "engine": ["vllm-hostpath"],
        "release": [PINNED],
        "python": [""],
        "heap_objects": [0],
        "wire": ["pickle"],
        "delivery": ["per_request"],
    }

    versions: tuple[str, ...] = ()
    vllm_path: Annotated[
        list[str],
        Flag(
            "A vLLM source tree as one more release; may be given several times.",
            section="Options",
            is_main=True,
            metavar="PATH",
        ),
    ] = []
    last_patches: Annotated[
        bool,
        Flag(
            "Of a range only the last release of each minor version.",
            section="Options",
            is_main=True,
        ),
    ] = False
    rounds: Annotated[int, Flag("Timed trials per cell.", is_main=True, least=1)] = 1
    repeats: Annotated[
        int,
        Flag(
            "Trials that count under the first policy; on null, in one process, they must agree.",
            least=1,
        ),
    ] = 2
    resume: Annotated[
        str,
        Flag(
            "Go on with an interrupted run, or with more --rounds.",
            section="Output",
            metavar="NAME",
        ),
    ] = ""

    def named(self) -> "ReleasesRequest":
        """With each range as its releases. Raises ReleaseError as `wanted_releases`."""
        versions = wanted_releases(self.versions, last_patches=self.last_patches)
        return replace(self, versions=tuple(versions), last_patches=False)

    def wanted(self) -> list[str]:
        """The releases and trees, each once, of a request without ranges."""
        return list(dict.fromkeys([*self.versions, *self.vllm_path])) or [PINNED]

    def grid(self) -> dict[str, list[Value]]:
        """With the releases as they are wanted."""
        return super().grid() | {"release": list(self.wanted())}


class NoReleaseError(Exception):
    """None of the releases can be run."""


def measure_releases(request: ReleasesRequest, caller: Caller) -> ExperimentResult:
    """Measure each in an environment of its own; one that cannot be had is left out.

    Raises ValueError for what cannot be asked, NoReleaseError where all are left out.
    """
    request = request.named()
    session = Session(request, caller, is_prepared=False)
    plan = partial(
        session.plan, rounds=request.rounds, repeats=request.repeats, resume=request.resume
    )
    plan(session.grid.cells)  # refused now, if it is
    prepared, failures = prepare_releases(request.wanted(), caller)
    if not prepared:
        raise NoReleaseError
    cells = [cell for cell in session.grid.cells if cell.release in prepared]
    measured = plan(cells, counting=counting_modes(cells, _COUNTING))
    result = session.summarise(session.run(measured))
    labels = {cell.release: release_label(cell.release) for cell in cells}
    result = replace(result, release_labels=labels, missing_releases=failures)
    keep_result(request.output, result)
    return result
