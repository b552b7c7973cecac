"""A result along an engine's releases: which there are, a line a policy, and what came in where."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from pathlib import PurePath
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from harness.experiment.result import CellResult, ExperimentResult
from harness.metrics import METRICS
from harness.report.header import varying_axes
from harness.report.known_releases import KnownChange, KnownReleases, known_releases

YOUNG = "gc_collections_gen0"
"""The metric of which a chart, a sentence and a picture tell first."""


BYTECODES, HOST_TIME = "bytecodes_per_request_step", "host_time_per_request_step"


class ReleaseLine(NamedTuple):
    """Cells that differ in their release alone; ``cells``: one a release, None where it has none.

    ``name`` is the collector policy, with the values of what else varies between lines.
    """

    name: str
    policy: str
    cells: list[CellResult | None]

    def medians(self, metric: str) -> list[float | None]:
        """The metric's median at each release."""
        found = [cell.metrics.get(metric) if cell else None for cell in self.cells]
        return [samples.median if samples else None for samples in found]

    def spread(self, metric: str) -> list[tuple[float, float] | None]:
        """The least and the most sample at each release; None below two samples."""
        ends: list[tuple[float, float] | None] = []
        for cell in self.cells:
            samples = cell.metrics.get(metric) if cell else None
            known = [value for value in samples.samples if value is not None] if samples else []
            ends.append((min(known), max(known)) if len(known) > 1 else None)
        return ends

    def is_exact(self, metric: str) -> bool:
        """Whether each of its figures is exact here."""
        found = [cell.metrics[metric] for cell in self.cells if cell and metric in cell.metrics]
        return bool(found) and all(samples.kind == "exact" for samples in found)


class ReleaseLines(NamedTuple):
    """``releases`` in the order of versions, what is none (a path) last; ``known``: what is on
    record of this engine's.
    """

    releases: list[str]
    lines: list[ReleaseLine]
    known: KnownReleases


class ReleaseStep(NamedTuple):
    """A metric from one release to the next."""

    before: str
    after: str
    value_before: float
    value_after: float

    @property
    def size(self) -> float:
        """How far apart, whichever way: log 2 for double or half; infinite from or to nothing."""
        if self.value_before <= 0 or self.value_after <= 0:
            return inf
        return abs(log(self.value_after / self.value_before))


def version_of(release: str) -> Version | None:
    """The release as a version; None for a path."""
    try:
        return Version(release)
    except InvalidVersion:
        return None


def release_name(release: str) -> str:
    """What a page calls it: of a path the last part only."""
    return release if version_of(release) else PurePath(release).name or release


def in_order(releases: Sequence[str]) -> list[str]:
    """Each once, by version; what is no version last, as it came."""
    each = dict.fromkeys(releases)
    versions = [(version, release) for release in each if (version := version_of(release))]
    found = [release for _, release in sorted(versions, key=lambda pair: pair[0])]
    return [*found, *(release for release in each if not version_of(release))]


def release_lines(result: ExperimentResult) -> ReleaseLines:
    """The cells of a result by release; copies of a cell are left out."""
    names = release_names(result)
    releases = in_order(list(filter(None, names.values())))
    others = [axis for axis in varying_axes(result) if axis not in ("release", "copy", "gc")]
    lines: dict[tuple[str, ...], dict[str, CellResult]] = {}
    for cell in result.cells:
        key = tuple(str(cell.axes.get(axis, "")) for axis in ("gc", *others))
        lines.setdefault(key, {}).setdefault(names[str(cell.axes.get("release", ""))], cell)
    engine = next((str(cell.axes.get("engine", "")) for cell in result.cells), "")
    return ReleaseLines(
        releases,
        [
            ReleaseLine(" · ".join(filter(None, key)), key[0], list(map(cells.get, releases)))
            for key, cells in lines.items()
        ],
        known_releases(engine),
    )


def release_names(result: ExperimentResult) -> dict[str, str]:
    """What the page calls each value of the axis ``release``: a tree by its version, if its label
    is one that no other has.
    """
    found = {str(cell.axes.get("release", "")): "" for cell in result.cells}
    for release in found:
        label = result.release_labels.get(release, "")
        is_own = version_of(label) and label not in (*found, *found.values())
        found[release] = label if is_own and not version_of(release) else release
    return found


def left_out(result: ExperimentResult) -> dict[str, str]:
    """Releases that were asked for and are not there, each with its reason."""
    found = dict(result.missing_releases)
    for failure in result.failures:
        release = failure.cell.release
        if version_of(release):
            found.setdefault(release, f"{failure.kind.replace('_', ' ')}: {failure.reason}")
    there = {str(cell.axes.get("release")) for cell in result.cells if cell.samples}
    return {release: reason for release, reason in found.items() if release not in there}


def changes_by_release(
    releases: Sequence[str], changes: Sequence[KnownChange]
) -> dict[str, list[KnownChange]]:
    """Each change at the first of ``releases`` that has it, those that were tried first.

    Changes older than the first of them, or newer than the last, are left out.
    """
    versions = [
        (version, release) for release in in_order(releases) if (version := version_of(release))
    ]
    found: dict[str, list[KnownChange]] = {}
    for change in sorted(changes, key=lambda change: not change.tried):
        since = Version(change.release)
        if versions and since >= versions[0][0]:
            having = next((release for version, release in versions if version >= since), None)
            if having is not None:
                found.setdefault(having, []).append(change)
    return found


def release_steps(
    releases: Sequence[str], values: Sequence[float | None], metric: str
) -> list[ReleaseStep]:
    """The changes between neighbouring versions that are worth a word, the largest first.

    Neighbours are releases with a figure; worth a word is what `harness.metrics` says.
    """
    known = [
        (release, value)
        for release, value in zip(releases, values, strict=True)
        if value is not None and version_of(release)
    ]
    found = [
        ReleaseStep(a, b, before, after)
        for (a, before), (b, after) in pairwise(known)
        if METRICS[metric].differs(before, after)
    ]
    return sorted(found, key=lambda step: step.size, reverse=True)
