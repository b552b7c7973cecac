"""Figures as Apache Otava (formerly Hunter) reads them: a CSV file for each test, and otava.yaml.

A test is what was measured at the same commits of one machine and environment: Otava wants a
number in every row and column. Source of the format: `CsvImporter` and `create_csv_test_config`
of Apache Otava 0.8.
"""

import csv
import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import NamedTuple

import numpy as np
import pandas as pd

CONFIG = "otava.yaml"
_DIRECTIONS = {"higher": 1, "lower": -1, "neither": 0}
_TIME = "%Y-%m-%d %H:%M:%S +0000"


class _Test(NamedTuple):
    name: str
    directions: dict[str, int]
    rows: list[list[str]]


def otava_files(figures: pd.DataFrame) -> dict[str, str]:
    """The text of each file by its name; none where no figure is current and a number.

    Rows are in the order of the commits' dates. Metrics carry the names of their series, and a
    direction of 0 where the metric has none, which Otava takes for no regression either way.
    """
    usable = figures[figures["is_current"] & np.isfinite(figures["value"])]
    tests = list(_tests(usable))
    if not tests:
        return {}
    config = {
        "tests": {
            test.name: {
                "type": "csv",
                "file": f"{test.name}.csv",
                "time_column": "time",
                "attributes": ["commit"],
                "metrics": {name: {"direction": way} for name, way in test.directions.items()},
            }
            for test in tests
        }
    }
    # What is JSON is YAML, too, whatever is in the names.
    files = {CONFIG: json.dumps(config, indent=2, ensure_ascii=False) + "\n"}
    return files | {f"{test.name}.csv": _csv(test) for test in tests}


def _tests(figures: pd.DataFrame) -> Iterator[_Test]:
    taken: set[str] = set()
    for (machine, environment), rows in figures.groupby(["machine", "environment"], observed=True):
        series_at: dict[tuple[str, ...], list[str]] = {}
        values: dict[tuple[str, str], float] = {}
        dates: dict[str, pd.Timestamp] = {}
        directions: dict[str, int] = {}
        commits_of: dict[str, list[str]] = {}
        columns = ("commit", "date", "series", "value", "direction")
        for commit, date, series, value, direction in zip(
            *(rows[name] for name in columns), strict=True
        ):
            dates[commit] = date
            values[series, commit] = value
            directions[series] = _DIRECTIONS[direction]
            commits_of.setdefault(series, []).append(commit)
        for series, commits in commits_of.items():
            series_at.setdefault(tuple(dict.fromkeys(commits)), []).append(series)
        for measured_at, together in series_at.items():
            name = _free(re.sub(r"[^A-Za-z0-9._-]+", "-", f"{machine}.{environment}"), taken)
            yield _Test(
                name,
                {series: directions[series] for series in together},
                [
                    [
                        dates[commit].strftime(_TIME),
                        commit,
                        *(repr(values[series, commit]) for series in together),
                    ]
                    for commit in sorted(measured_at, key=dates.__getitem__)
                ],
            )


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}.{number}"
    taken.add(free)
    return free


def _csv(test: _Test) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", "commit", *test.directions])
    writer.writerows(test.rows)
    return text.getvalue()
