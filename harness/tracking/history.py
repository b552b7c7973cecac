"""The way into what was measured before: asv's results and raw trials, as tidy pandas frames."""

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from harness.tracking.asv.config import results_folder, unknown_keys
from harness.tracking.asv.result_files import read_figures
from harness.tracking.figure import Figure
from harness.tracking.folders import down_to, json_files, subfolders
from harness.tracking.frames import figures_frame
from harness.tracking.raw_trials import failures_frame, read_trials, trials_frame

__all__ = ["History", "load"]


class History(NamedTuple):
    """Frames of one value a row; docs/history.md names their columns.

    ``problems`` holds a sentence for each thing that could not be read.
    """

    figures: pd.DataFrame
    trials: pd.DataFrame
    failures: pd.DataFrame
    problems: list[str]


def load(results: Path | str) -> History:
    """Read an asv results folder, an ``asv.conf.json``, raw trials, or a folder with these below.

    Nothing is written or moved. Raises ValueError where nothing could be read.
    """
    root, problems = Path(results), list[str]()
    try:
        if root.is_file():
            problems += unknown_keys(root)
            root = results_folder(root)
        is_folder = root.is_dir()
    except OSError as error:
        raise ValueError(f"{root} cannot be read: {error.strerror or error}") from error
    if not is_folder:
        raise ValueError(f"there is no folder {root}; give one of asv's results or of raw trials")
    figures: list[Figure] = []
    for folder in down_to(root, 1, problems):
        if _is_asv(folder, problems):
            figures += read_figures(folder, problems)
    experiments = [
        folder
        for folder in down_to(root, 2, problems)
        if any(inner.name == "trials" for inner in subfolders(folder, problems))
    ]
    trials, failures = read_trials(experiments, problems)
    if not (figures or trials or failures):
        raise ValueError(_nothing(root, problems))
    return History(figures_frame(figures), trials_frame(trials), failures_frame(failures), problems)


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
