"""Figures as a pandas frame: a row a figure, a column a parameter."""

from ast import literal_eval
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any
from warnings import catch_warnings

import pandas as pd

from harness.tracking.figure import Figure

FRAME_COLUMNS = tuple(field for field in Figure._fields if field != "params")

SERIES = ["machine", "environment", "series"]
"""What tells one line of values across commits from another."""

_MOST_PARAMETERS = 500
"""Each is a column as long as the frame: many of them would be the square of a file's length."""

_TEXTS = (
    "commit",
    "machine",
    "environment",
    "suite",
    "benchmark",
    "metric",
    "series",
    "outcome",
    "unit",
    "direction",
    "kind",
    "version",
    "result_version",
)


def figures_frame(figures: Sequence[Figure]) -> pd.DataFrame:
    """One row a figure, by the commits' dates; a column a parameter, missing where there is none.

    A parameter whose name is already a column's is called ``param_<name>``. Of parameters beyond
    the first 500 only the series' names tell.
    """
    figures = sorted(figures, key=lambda figure: figure.date)
    frame = pd.DataFrame(  # a column at a time: a frame of all rows takes several times as much
        {
            name: _column(name, [figure[place] for figure in figures])
            for place, name in enumerate(FRAME_COLUMNS)
        }
    )
    for name in ("date", "measured"):
        frame[name] = pd.to_datetime(frame[name], unit="ms", utc=True).dt.as_unit("ms")
    for name in ("value", "ci_low", "ci_high", "duration", "noise_floor", "least_change"):
        frame[name] = frame[name].astype("float64")
    frame["is_current"] = frame["is_current"].astype(bool)
    frame["samples"] = frame["samples"].astype(object).where(frame["samples"].notna(), None)
    texts: dict[str, list[str | None]] = {}
    for row, figure in enumerate(figures):
        for name, text in figure.params.items():
            if name not in texts:
                if len(texts) == _MOST_PARAMETERS:
                    continue
                texts[name] = [None] * len(figures)
            texts[name][row] = text
    columns = {
        _free(name, texts.keys()): parameter_column(values) for name, values in texts.items()
    }
    return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis="columns")


def _column(name: str, values: list[Any]) -> "pd.Series[Any]":
    return pd.Series(values, dtype="category" if name in _TEXTS else None)


def parameter_columns(figures: pd.DataFrame) -> list[str]:
    """The columns of a frame of figures that are parameters."""
    return [str(column) for column in figures.columns if column not in FRAME_COLUMNS]


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
