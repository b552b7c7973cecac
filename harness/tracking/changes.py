"""What changed between two commits: the verdict on each series, and the two figures beside it."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.tracking.frames import SERIES
from harness.tracking.verdict import Between, Key, SeriesVerdict, Word

_OWN = ["suite", "benchmark", "metric", "unit", "direction", "kind", "noise_floor", "least_change"]

Verdicts = Mapping[Key, SeriesVerdict]


def changes(figures: pd.DataFrame, verdicts: Verdicts, base: str, head: str) -> pd.DataFrame:
    """Two commits, named by prefixes of their hashes; one row a series.

    Only current figures count. ``suspects`` holds the commits one of which made a change, where
    that is not known. Raises ValueError where a prefix is of no commit or of several, or both are
    of the same.
    """
    before, after = find_known_commit(figures, base), find_known_commit(figures, head)
    if before == after:
        raise ValueError(f"{base!r} and {head!r} are the same commit {before[:12]}; name two")
    current = figures[figures["is_current"]]
    one, other = current[current["commit"] == before], current[current["commit"] == after]
    return _judged(one, other, verdicts).assign(base=before, head=after)


def latest_changes(figures: pd.DataFrame, verdicts: Verdicts) -> pd.DataFrame:
    """The last two commits with a value of each series; one with fewer is left out."""
    columns = dict.fromkeys([*SERIES, *_OWN, "commit", "value", "date", "measured"])
    current = figures.loc[figures["is_current"], list(columns)]
    current = current.sort_values(["date", "measured"], kind="stable")
    commits = {key: list(each.places) for key, each in verdicts.items() if len(each.places) > 1}
    one, other = (
        current[_is_of(current, [(*key, of[back]) for key, of in commits.items()])]
        for back in (-2, -1)
    )
    return _judged(one, other, verdicts)


def _is_of(figures: pd.DataFrame, wanted: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
    """Rows of these series and commits; by their categories' numbers, there may be a million."""
    rows, keys = np.zeros(len(figures), np.int64), np.zeros(len(wanted), np.int64)
    for name, texts in zip((*SERIES, "commit"), zip(*wanted, strict=True), strict=False):
        known = figures[name].astype("category").cat
        rows = rows * len(known.categories) + known.codes.to_numpy()
        keys = keys * len(known.categories) + known.categories.get_indexer(pd.Index(texts))
    return np.isin(rows, keys)


def find_known_commit(figures: pd.DataFrame, prefix: str) -> str:
    """The full hash that begins with ``prefix``. Raises ValueError where there is not one."""
    dates = figures.groupby("commit", observed=True)["date"].max().sort_values(ascending=False)
    known = [str(commit) for commit in dates.index]
    found = [commit for commit in known if commit.startswith(prefix.lower())] if prefix else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"{prefix!r} may be any of {', '.join(commit[:12] for commit in found[:5])}; "
            "give more digits of the one that is meant"
        )
    newest = ", ".join(commit[:12] for commit in known[:3]) or "none at all"
    raise ValueError(
        f"there is no commit {prefix!r} in these results; give the beginning of a hash as "
        f"`git rev-parse` prints it: the newest here are {newest}"
    )


def _keys(frame: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(frame[SERIES].astype(str))


def _judged(base: pd.DataFrame, head: pd.DataFrame, verdicts: Verdicts) -> pd.DataFrame:
    """One row for each series of either side, in their order."""
    sides = [side.set_index(_keys(side)) for side in (base, head)]
    sides = [side[~side.index.duplicated(keep="last")] for side in sides]
    # The head first: where a metric was defined anew, its newest definition is shown.
    all_rows = pd.concat(sides[::-1])
    rows = all_rows[~all_rows.index.duplicated()]
    one, other = (side.reindex(rows.index) for side in sides)
    before, after = one["value"].to_numpy(), other["value"].to_numpy()
    table: dict[str, Any] = {name: rows[name] for name in (*SERIES, *_OWN)}
    table |= {"base": one["commit"], "head": other["commit"], "before": before, "after": after}
    with np.errstate(all="ignore"):  # by zero, or beyond the largest float: infinite
        table["ratio"] = np.where((before == 0) & (after == 0), 1.0, after / before)
    found = [
        Between("missing")
        if pd.isna(first) or pd.isna(second)
        else verdicts[key].between(str(first), str(second))
        for key, first, second in zip(rows.index, one["commit"], other["commit"], strict=True)
    ]
    table["verdict"] = pd.Categorical([each.word for each in found], categories=get_args(Word))
    table["suspects"] = pd.Series([list(each.suspects) for each in found], rows.index, object)
    return pd.DataFrame(table).reset_index(drop=True)
