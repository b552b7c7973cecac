"""The way into what was measured before: asv's results and raw trials, as tidy pandas frames."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from harness.files import StoreError
from harness.tracking.asv.checkout import branches, config_of, repository, rewritten
from harness.tracking.asv.config import asv_results_folder, unknown_keys
from harness.tracking.asv.result_files import read_figures
from harness.tracking.figure import BenchmarkFigures
from harness.tracking.folders import down_to, json_files, subfolders
from harness.tracking.frames import figures_frame, parameters_frame
from harness.tracking.raw_trials import failures_frame, read_trials, trials_frame
from harness.tracking.reruns import StoredRerun, load_reruns

__all__ = ["History", "load_history"]


class History(NamedTuple):
    """Frames of one value a row; docs/history.md names their columns.

    ``problems`` holds a sentence for each thing that could not be read. ``rewritten``: the measured
    commits that are no longer in the history of a branch; they have no figures here. ``config``:
    the configuration that asv's results are of, where one is found.
    """

    figures: pd.DataFrame
    parameters: pd.DataFrame
    trials: pd.DataFrame
    failures: pd.DataFrame
    problems: list[str]
    reruns: Sequence[StoredRerun] = ()
    rewritten: Sequence[str] = ()
    config: Path | None = None

    def without(self, commits: Collection[str]) -> "History":
        """Less the figures of these commits, which are rewritten too."""
        kept = self.figures[~self.figures["commit"].isin(commits)]
        return self._replace(figures=kept, rewritten=sorted({*self.rewritten, *commits}))


def load_history(results: Path | str) -> History:
    """Read an asv results folder, an ``asv.conf.json``, raw trials, or a folder with these below.

    Nothing is written or moved. Raises ValueError where nothing could be read.
    """
    root, problems = Path(results), list[str]()
    given = None
    try:
        if root.is_file():
            problems += unknown_keys(root)
            given, root = root, asv_results_folder(root)
        is_folder = root.is_dir()
    except OSError as error:
        raise ValueError(f"{root} cannot be read: {error.strerror or error}") from error
    if not is_folder:
        raise ValueError(f"there is no folder {root}; give one of asv's results or of raw trials")
    figures, reruns = list[BenchmarkFigures](), list[StoredRerun]()
    left, configs = set[str](), list[Path]()
    for folder in down_to(root, 1, problems):
        if not _is_asv(folder, problems):
            continue
        found = read_figures(folder, problems)
        if config := given or config_of(folder):
            configs.append(config)
            gone = _rewritten(config, {each.commit for each in found}, problems)
            found = [each for each in found if each.commit not in gone]
            left |= gone
        figures += found
        try:
            reruns += load_reruns(folder)
        except StoreError as problem:
            problems.append(f"{problem}; its re-runs are not known")
    experiments = [
        folder
        for folder in down_to(root, 2, problems)
        if any(inner.name == "trials" for inner in subfolders(folder, problems))
    ]
    trials, failures = read_trials(experiments, problems)
    if not (figures or left or trials or failures):
        raise ValueError(_nothing(root, problems))
    return History(
        figures_frame(figures),
        parameters_frame(figures),
        trials_frame(trials),
        failures_frame(failures),
        problems,
        reruns,
        sorted(left),
        next(iter(configs), None),
    )


_RESULT = re.compile(r"[0-9a-f]{8}-")
"""How asv's result files begin: eight digits of the commit, then the environment."""


def _is_asv(folder: Path, problems: list[str]) -> bool:
    """Whether a folder holds benchmarks, or machines, or at least what looks like their results."""
    if any(path.name == "benchmarks.json" for path in json_files(folder, problems)):
        return True
    return any(
        path.name == "machine.json" or _RESULT.match(path.name)
        for machine in subfolders(folder, problems)
        for path in json_files(machine, problems)
    )


def _rewritten(config: Path, commits: set[str], problems: list[str]) -> set[str]:
    """None where the checkout cannot tell; that it is on another machine is no problem."""
    try:
        root = repository(config)
    except ValueError:
        return set()
    try:
        return rewritten(root, branches(config), commits)
    except ValueError as error:
        problems.append(f"{error}; until then commits of a rewritten history are not left out")
        return set()


def _nothing(root: Path, problems: list[str]) -> str:
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return f"nothing in {root} could be read: {problems[0]}{more}"
    if any(path.name == "machine.json" for path in json_files(root, problems)):
        return f"{root} is the folder of one machine; give the one above it"
    return (
        f"{root} holds neither asv's results nor raw trials; give the folder that does, "
        "or an asv.conf.json"
    )
