"""An engine's host path, release by release, with no GPU."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec.structs import replace

from engines.registry import ENGINES
from harness.axes import Value
from harness.experiment.plan import counting_modes
from harness.experiment.result import ExperimentResult
from harness.result.result import keep_result
from harness.trial.spec import Mode
from harness.verbs.caller import Caller
from harness.verbs.release_sources import (
    ReleaseSource,
    engine_named,
    lay_out_all,
    release_source,
    wanted_releases,
)
from harness.verbs.request import Flag, SpreadRequest
from harness.verbs.session import Session

_COUNTING: tuple[Mode, ...] = ("counts", "tracked", "opcodes", "grid", "wire")


class ReleasesRequest(SpreadRequest, frozen=True, kw_only=True):
    """``engine``: its name, or that of the package that it runs. ``versions``: releases and ranges
    of them; with ``tree`` the source trees to measure too. Without either it is the usual release.
    """

    defaults: ClassVar[dict[str, list[Value]]] = {
        "workload": ["opt125m-48-300"],
        "device": ["null"],
        "gc": ["as_is", "freeze", "default"],
        "setup": ["shipped", "lean"],
    }
    decided: ClassVar[dict[str, list[Value]]] = {
        "engine": [""],
        "release": [""],
        "python": [""],
        "heap_objects": [0],
        "wire": ["pickle"],
        "delivery": ["per_request"],
    }

    engine: str
    versions: tuple[str, ...] = ()
    tree: Annotated[
        list[str],
        Flag(
            "A source tree as one more release; may be given several times.",
            section="Options",
            is_main=True,
            metavar="PATH",
        ),
    ] = []
    repo: Annotated[
        Path,
        Flag(
            "The checkout whose tags are the releases of an engine that has no others.",
            section="Options",
            is_main=True,
        ),
    ] = Path()
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

    def source(self) -> ReleaseSource:
        """Where its releases come from. Raises ValueError for an unknown engine."""
        return release_source(ENGINES.load(engine_named(self.engine)), self.repo)

    def named(self) -> "ReleasesRequest":
        """With each range as its releases, and the usual one where none is named.

        Raises ValueError as `wanted_releases`.
        """
        source = self.source()
        versions = wanted_releases(source, self.versions, last_patches=self.last_patches)
        if not versions and not self.tree:
            versions = [source.usual()]
        return replace(self, versions=tuple(versions), last_patches=False)

    def wanted(self) -> list[str]:
        """The releases and trees, each once, of a request without ranges."""
        return list(dict.fromkeys([*self.versions, *self.tree]))

    def values(self, axis: str) -> list[Value]:
        """With the engine and the releases as they are wanted."""
        if axis == "engine":
            return [engine_named(self.engine)]
        return list(self.wanted()) if axis == "release" else super().values(axis)


def _by_label(note: str, labels: Mapping[str, str]) -> str:
    """A note as people call releases, whose trees lie in a folder of ours."""
    for release, label in labels.items():
        note = note.replace(release, label)
    return note


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
    found, failures = lay_out_all(request.source(), request.wanted(), caller)
    if not found:
        raise NoReleaseError
    cells = list(
        dict.fromkeys(  # two names of one commit are one release
            replace(cell, release=found[cell.release].release)
            for cell in session.grid.cells
            if cell.release in found
        )
    )
    measured = plan(cells, counting=counting_modes(cells, _COUNTING))
    result = session.summarise(session.run(measured))
    labels: dict[str, str] = {}
    for each in found.values():
        labels.setdefault(each.release, each.label)
    result = replace(
        result,
        release_labels=labels,
        missing_releases=failures,
        notes=[_by_label(note, labels) for note in result.notes],
    )
    keep_result(request.output, result)
    return result
