"""Figures as pandas frames: a row a figure, and a row a series with its parameters."""

from ast import literal_eval
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from warnings import catch_warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.tracking.figure import BenchmarkFigures

FRAME_COLUMNS = (
    "commit",
    "date",
    "machine",
    "environment",
    "suite",
    "benchmark",
    "metric",
    "series",
    "value",
    "outcome",
    "unit",
    "direction",
    "kind",
    "noise_floor",
    "least_change",
    "ci_low",
    "ci_high",
    "samples",
    "duration",
    "measured",
    "version",
    "result_version",
    "is_current",
)

SERIES = ["machine", "environment", "series"]
"""What tells one line of values across commits from another."""

_MOST_PARAMETERS = 500
"""Each is a column as long as the frame: many of them would be the square of a file's length."""

_TEXTS = [
    "commit",
    "machine",
    "environment",
    "suite",
    "benchmark",
    "metric",
    "unit",
    "direction",
    "kind",
    "version",
    "result_version",
]


def figures_frame(figures: Sequence[BenchmarkFigures]) -> pd.DataFrame:
    """One row a figure, by the commits' dates."""
    figures = sorted(figures, key=lambda each: each.date)
    lengths = [len(each.value) for each in figures]
    columns: dict[str, Any] = dict.fromkeys(FRAME_COLUMNS)  # their order
    for name in _TEXTS:
        of = pd.Categorical([getattr(each, name) for each in figures])
        columns[name] = _repeated(of, lengths)
    all_points = {id(each.points): each.points for each in figures}
    names = pd.Categorical([name for each in all_points.values() for name in each.series])
    ends = np.cumsum([len(each.series) for each in all_points.values()])
    codes = dict(zip(all_points, np.split(names.codes, ends), strict=False))
    columns["series"] = pd.Categorical.from_codes(
        _joined([codes[id(each.points)] for each in figures], np.int8), dtype=names.dtype
    )
    columns["outcome"] = pd.Categorical([word for each in figures for word in each.outcome])
    for name in ("noise_floor", "least_change", "duration"):
        columns[name] = np.repeat([getattr(each, name) for each in figures], lengths)
    for name in ("value", "ci_low", "ci_high"):
        columns[name] = _joined([getattr(each, name) for each in figures], np.float64)
    for name in ("date", "measured"):
        dates = pd.to_datetime([getattr(each, name) for each in figures], unit="ms", utc=True)
        columns[name] = dates.as_unit("ms").repeat(lengths)
    columns["samples"] = np.fromiter((kept for each in figures for kept in each.samples), object)
    columns["is_current"] = _joined([each.is_current for each in figures], np.bool_)
    return pd.DataFrame(columns)


def _repeated(values: pd.Categorical, lengths: Sequence[int]) -> pd.Categorical:
    return pd.Categorical.from_codes(np.repeat(values.codes, lengths), dtype=values.dtype)


def _joined(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def parameters_frame(figures: Sequence[BenchmarkFigures]) -> pd.DataFrame:
    """One row a series, a column a parameter, missing where the series has none.

    A parameter whose name is a column's of `figures_frame` is called ``param_<name>``. Of
    parameters beyond the first 500 only the series' names tell.
    """
    of: dict[str, Mapping[str, str]] = {}
    for points in {id(each.points): each.points for each in figures}.values():
        of.update(zip(points.series, points.parameters, strict=True))
    texts: dict[str, list[str | None]] = {}
    for row, parameters in enumerate(of.values()):
        for name, text in parameters.items():
            if name not in texts:
                if len(texts) == _MOST_PARAMETERS:
                    continue
                texts[name] = [None] * len(of)
            texts[name][row] = text
    columns = {
        _free(name, texts.keys()): parameter_column(values) for name, values in texts.items()
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(len(of))).set_axis(pd.Index(of, dtype=object))


def parameters_by_series(parameters: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Those that each series has, by name."""
    found: dict[str, dict[str, Any]] = {str(series): {} for series in parameters.index}
    for name, column in parameters.items():
        kept = column.dropna()
        for series, value in zip(kept.index, kept.tolist(), strict=True):
            found[str(series)][str(name)] = value
    return found


def parameter_column(texts: Sequence[str | None]) -> "pd.Series[Any]":
    """Values in Python's notation, None where missing: numbers if all fit 64 bits, else text."""
    values = [None if text is None else _value(text) for text in texts]
    kinds = {type(value) for value in values if value is not None}
    fit = all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int))
    if kinds == {int} and fit:
        return pd.Series(values, dtype="Int64")
    if kinds and kinds <= {int, float} and fit:
        return pd.Series(values, dtype="float64")
    shown = [
        value if value is None or isinstance(value, str) else text
        for value, text in zip(values, texts, strict=True)
    ]
    return pd.Series(shown, dtype="object").astype("category")


@lru_cache(maxsize=4096)
def _value(text: str) -> str | int | float:
    """What a parameter's text stands for; the text itself where that is no number and no string."""
    try:
        with catch_warnings(action="ignore"):  # of strange escapes in what is no code of ours
            value = literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if type(value) in (str, int, float) else text


def _free(name: str, names: Collection[str]) -> str:
    free = name
    while free in FRAME_COLUMNS or (free != name and free in names):
        free = f"param_{free}"
    return free
