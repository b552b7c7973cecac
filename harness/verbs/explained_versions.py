"""The versions that are to be explained: commits of a checkout, or releases."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from engines.protocol import EngineClass
from harness.axes import Cell
from harness.explain.bodies import ExplainedVersion
from harness.report.release_lines import release_name
from harness.tracking.gate.trees import take_tree
from harness.verbs.caller import Caller
from harness.verbs.release_sources import LaidOut, ReleaseSource, lay_out_all


def commit_versions(
    repo: Path, commits: Sequence[str], package: str, cell: Cell, folder: Path
) -> list[ExplainedVersion]:
    """The package of each commit, laid out in a folder of its own. Raises as `take_tree`."""
    trees = [
        take_tree(repo, commit, package, folder / f"{number}")
        for number, commit in enumerate(commits)
    ]
    return [
        ExplainedVersion(tree.label, replace(cell, release=tree.folder), tree.folder)
        for tree in trees
    ]


def release_versions(
    cells: Sequence[Cell], engine: EngineClass, source: ReleaseSource, caller: Caller
) -> tuple[list[ExplainedVersion], list[str]]:
    """The releases or trees that can be run, and a sentence for each that cannot.

    A release is made ready where it is not. Raises ValueError for a tree that cannot be run.
    """
    named = [cell.release for cell in cells if cell.release]
    found, failures = lay_out_all(source, named, caller)
    versions: list[ExplainedVersion] = []
    for cell in cells:
        if cell.release in failures:
            continue
        laid_out = found.get(cell.release) or LaidOut("", "this code", "")
        engine.launch("", laid_out.release)  # refused now, if it is
        label = laid_out.label
        if label in (each.label for each in versions):
            label = release_name(cell.release)  # a path whose version is there already
        runs = replace(cell, release=laid_out.release)
        versions.append(ExplainedVersion(label, runs, laid_out.root))
    return versions, [f"{release}: {why}" for release, why in failures.items()]
