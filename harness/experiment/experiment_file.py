"""Experiments as files: parts to compare one after the other, and one table of them all."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from engines.nearest import nearest
from harness.experiment.result import ExperimentResult
from harness.metrics import METRICS
from harness.result.result import Result
from workloads.recipe.spec import read_toml

_FOLDER = Path(__file__).parent / "catalog"


class Column(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of the table: a metric's median over rounds, in ``unit`` where it is a time.

    ``shows``: "value", the cell's own; "baseline", that of the part's baseline with the sign
    turned, what the others would gain by saving all of it; "change", against the baseline with
    its interval, of the metric that decides.
    """

    title: str
    metric: str
    shows: Literal["value", "baseline", "change"] = "value"
    unit: Literal["s", "ms", "µs"] = "ms"


class Published(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures that somebody else has published, by the title of their column, as they stand."""

    source: str
    figures: dict[str, str]


class FilePart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comparison of its own: what it sets beside the file's ``flags``, and what others found."""

    title: str
    flags: dict[str, Any] = {}
    published: list[Published] = []


class ExperimentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``flags``: of `gcbench compare`, for every part."""

    question: str
    flags: dict[str, Any] = {}
    columns: list[Column]
    parts: list[FilePart]
    note: str = ""
    name: str = ""


class PartResult(msgspec.Struct, frozen=True, kw_only=True):
    """A part that has run, whole or interrupted."""

    title: str
    published: list[Published]
    result: ExperimentResult


class PartsResult(Result, frozen=True, kw_only=True, tag="parts"):
    """What `compare --experiment` knows at its end; `--json` writes it as it stands.

    ``columns`` and ``note``: of the file, for its table; empty in what an older gcbench has stored.
    """

    question: str
    parts: list[PartResult]
    columns: list[Column] = []
    note: str = ""


def experiment_names() -> list[str]:
    """The experiments that come with the package, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_experiment_file(name_or_path: str) -> ExperimentFile:
    """An experiment that comes with the package, or one of a ``.toml`` file.

    Raises ValueError with one sentence that names the file and the place in it.
    """
    path = Path(name_or_path)
    if path.suffix.lower() != ".toml":
        if name_or_path not in experiment_names():
            near = ", ".join(nearest(name_or_path, experiment_names()))
            raise ValueError(
                f"there is no experiment {name_or_path!r}; did you mean {near}? (`gcbench list "
                "experiments` lists them, and a file of your own ends in .toml)"
            )
        path = _FOLDER / f"{name_or_path}.toml"
    file = read_toml(path, ExperimentFile, "experiment")
    if why := _mistake(file):
        raise ValueError(f"{path}: {why}")
    return file


def _mistake(file: ExperimentFile) -> str:
    """What the types do not say, in words, or ""."""
    if not file.parts or not file.columns:
        return "an experiment has at least one of [[parts]] and one of [[columns]]"
    for column in file.columns:
        if column.metric not in METRICS:
            near = ", ".join(nearest(column.metric, METRICS))
            return f"column {column.title!r}: no metric {column.metric!r}; did you mean {near}?"
    columns, parts = ([each.title for each in many] for many in (file.columns, file.parts))
    for titles in (columns, parts):
        if twice := next((title for title in titles if titles.count(title) > 1), ""):
            return f"two are called {twice!r}; give each a title of its own"
    for part in file.parts:
        for published in part.published:
            if strange := next((title for title in published.figures if title not in columns), ""):
                near = ", ".join(nearest(strange, columns))
                return f"part {part.title!r}: no column {strange!r}; did you mean {near}?"
    return ""
