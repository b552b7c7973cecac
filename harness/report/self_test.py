"""What the detector is worth at a history's own noise, in a table."""

from collections.abc import Sequence

from harness import format as fmt
from harness.render.table import PlainTable, Row
from harness.report.nightly_words import series_label
from harness.tracking.detect.self_test import FEW_POINTS, STEPS, WITHIN, SelfTest

_SHORT_HISTORY = (
    f"; *: fewer than {FEW_POINTS} points, too few to know the noise: one bad night among them "
    "comes back again and again in the simulation, so take the shares for a guess and ask again "
    "with more nights"
)


def self_test_table(rows: Sequence[SelfTest]) -> PlainTable:
    """What the detector is worth at the noise of each series; of rows that could be tested."""
    columns = (
        "series",
        "points",
        "noise",
        "false",
        *(
            f"{fmt.percent(step)[:-4]} % found\nwithin {'/'.join(map(str, WITHIN))}"
            for step in STEPS
        ),
        "nights to\nhalf of them",
    )
    few = any(row.points < FEW_POINTS for row in rows)
    numbers = " to ".join(
        dict.fromkeys(f"{end(row.repetitions for row in rows)}" for end in (min, max))
    )
    return PlainTable(
        "The detector at this history's own noise (simulated)",
        columns,
        [[_self_test_row(row) for row in rows]],
        "false: histories of 60 nights without a change in which there is an alert; found: steps "
        "with an alert within so many nights, by the nights alone; nights to half of them: after "
        f"how many half of the steps of {_steps_words()} % are found (– : not within "
        f"{max(WITHIN)}); each share is of {numbers} simulated histories" + _SHORT_HISTORY * few,
    )


def _steps_words() -> str:
    return "/".join(f"{100 * step:g}" for step in STEPS)


def _self_test_row(row: SelfTest) -> Row:
    shares = row.found or {}
    found = ("/".join(f"{100 * share:.0f}" for share in shares[step]) + " %" for step in STEPS)
    label = series_label(row.metric, row.series)
    caution = "*" * (row.points < FEW_POINTS)
    figures = (fmt.percent(row.noise), fmt.percent(row.false_alerts) + caution)
    delays = row.nights or {}
    nights = "/".join(str(delays.get(step) or fmt.MISSING) for step in STEPS)
    return (label, str(row.points), *figures, *found, nights)
