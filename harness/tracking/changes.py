"""What changed between two commits, judged by each metric's own direction and noise floor.

asv takes every rise for a loss; here a metric says itself which way is better, and one that does
not is said to have changed and no more.
"""

from typing import Any

import numpy as np
import pandas as pd

from harness.metrics import differs
from harness.tracking.frames import parameter_columns

SERIES = ["machine", "environment", "series"]
"""What tells one line of values across commits from another."""

VERDICTS = ("worse", "better", "changed", "same", "missing")

_OWN = ["suite", "benchmark", "metric", "unit", "direction", "kind", "noise_floor", "least_change"]


def changes(figures: pd.DataFrame, base: str, head: str) -> pd.DataFrame:
    """Compare two commits, named by prefixes of their hashes; one row a series.

    Only current figures count. Raises ValueError where a prefix is of no commit or of several, or
    both are of the same.
    """
    before, after = find_commit(figures, base), find_commit(figures, head)
    if before == after:
        raise ValueError(f"{base!r} and {head!r} are the same commit {before[:12]}; name two")
    current = figures[figures["is_current"]]
    judged = _judged(current[current["commit"] == before], current[current["commit"] == after])
    return judged.assign(base=before, head=after)


def latest_changes(figures: pd.DataFrame) -> pd.DataFrame:
    """Compare the last two commits of each series: by their dates and, where these are equal, by
    when they were measured. A series with one commit is left out.
    """
    current = figures[figures["is_current"]].sort_values(["date", "measured"], kind="stable")
    current = current.drop_duplicates([*SERIES, "commit"], keep="last")
    back = current.groupby(SERIES, observed=True).cumcount(ascending=False)
    before, after = current[back == 1], current[back == 0]
    return _judged(before, after[_keys(after).isin(_keys(before))])


def find_commit(figures: pd.DataFrame, prefix: str) -> str:
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


def _judged(base: pd.DataFrame, head: pd.DataFrame) -> pd.DataFrame:
    """One row for each series of either side, in their order."""
    sides = [side.set_index(_keys(side)) for side in (base, head)]
    sides = [side[~side.index.duplicated(keep="last")] for side in sides]
    # The head first: where a metric was defined anew, its newest definition judges.
    all_rows = pd.concat(sides[::-1])
    rows = all_rows[~all_rows.index.duplicated()]
    one, other = (side.reindex(rows.index) for side in sides)
    before, after = one["value"].to_numpy(), other["value"].to_numpy()
    table: dict[str, Any] = {name: rows[name] for name in (*SERIES, *_OWN)}
    table |= {name: rows[name] for name in parameter_columns(rows)}
    table |= {"base": one["commit"], "head": other["commit"], "before": before, "after": after}
    with np.errstate(all="ignore"):  # by zero, or beyond the largest float: infinite
        table["ratio"] = np.where((before == 0) & (after == 0), 1.0, after / before)
        verdicts = verdicts_of(rows, one, other)
    table["verdict"] = pd.Categorical(verdicts, categories=VERDICTS)
    return pd.DataFrame(table).reset_index(drop=True)


def verdicts_of(rows: pd.DataFrame, one: pd.DataFrame, other: pd.DataFrame) -> Any:
    """The verdict on each row, one of `VERDICTS`: ``one`` is the base, ``other`` the head."""
    before, after = one["value"].to_numpy(), other["value"].to_numpy()
    change = after - before
    floors = (rows[name].to_numpy() for name in ("noise_floor", "least_change"))
    apart = (_low(other) > _high(one)) | (_high(other) < _low(one))
    has_changed = differs(before, after, *floors) & (apart | (rows["kind"] == "exact").to_numpy())
    higher, lower = ((rows["direction"] == way).to_numpy() for way in ("higher", "lower"))
    return np.select(
        [
            np.isnan(change),
            ~has_changed,
            (higher & (change > 0)) | (lower & (change < 0)),
            higher | lower,
        ],
        ["missing", "same", "better", "worse"],
        "changed",
    )


def _low(side: pd.DataFrame) -> Any:
    """The interval's lower end; the value itself where asv kept no interval."""
    return side["ci_low"].fillna(side["value"]).to_numpy()


def _high(side: pd.DataFrame) -> Any:
    return side["ci_high"].fillna(side["value"]).to_numpy()
