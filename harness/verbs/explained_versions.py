"""The versions that are to be explained: commits of a checkout, or releases."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from engines.protocol import EngineClass
from engines.vllm.releases import layer
from harness.axes import Cell
from harness.explain.bodies import ExplainedVersion
from harness.report.release_label import release_label
from harness.report.release_lines import release_name
from harness.tracking.gate.trees import take_tree
from harness.verbs.caller import Caller
from harness.verbs.vllm_versions import prepare_releases


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
    cells: Sequence[Cell], engine: EngineClass, caller: Caller
) -> tuple[list[ExplainedVersion], list[str]]:
    """The releases or trees that can be run, and a sentence for each that cannot.

    A release of vLLM is made ready where it is not. Raises ValueError for a tree of another engine
    that cannot be run.
    """
    left_out: list[str] = []
    if engine.has_releases:
        named = [cell.release for cell in cells if cell.release]
        prepared, failures = prepare_releases(named, caller)
        left_out = [f"{release}: {why}" for release, why in failures.items()]
        cells = [cell for cell in cells if cell.release in ("", *prepared)]
    versions: list[ExplainedVersion] = []
    for cell in cells:
        engine.launch("", cell.release)  # refused now, if it is
        label, root = cell.release or "this code", cell.release
        if cell.release and engine.has_releases:
            label, root = release_label(cell.release), str(layer(cell.release))
            if label in (each.label for each in versions):
                label = release_name(cell.release)  # a path whose version is there already
        versions.append(ExplainedVersion(label, cell, root))
    return versions, left_out
