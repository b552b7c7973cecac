"""What a calibration comes to, in tables and sentences."""

from statistics import median

from benchmarks.calibrate.figures import Figure
from benchmarks.calibrate.known import ATTENTION_RATES, LAUNCH, RATES
from benchmarks.calibrate.result import Calibration, PointResult
from harness import format as fmt
from harness.render.table import PlainTable, Row

GOOD_MEDIAN, GOOD_WORST = 0.05, 0.2
"""Errors of a fit up to which a profile is said to stand for its device."""

_LABELS = {
    RATES[0]: "linear bandwidth",
    RATES[1]: "linear arithmetic",
    LAUNCH: "launch overhead",
    ATTENTION_RATES[0]: "attention bandwidth",
    ATTENTION_RATES[1]: "attention arithmetic",
}
_TOLD_BY = {
    RATES[0]: "steps of few tokens: a smaller --batch-size",
    RATES[1]: "steps of many tokens: a larger --batch-size or --prefill",
    LAUNCH: "more steps, of other numbers of tokens",
    ATTENTION_RATES[0]: "a longer --context",
    ATTENTION_RATES[1]: "a longer --prefill",
}


def rate(name: str, value: float | None) -> str:
    """A figure with its unit: "3.91 TB/s", "612 GFLOP/s", "41.0 µs"."""
    if name == LAUNCH:
        return fmt.seconds(value)
    return fmt.rate(value, "FLOP/s" if "flops" in name else "B/s")


def range_words(figure: Figure) -> str:
    """A figure's range: "3.8 to 4.0 TB/s", "at least …", "at most …", "open"."""
    low, high = rate(figure.name, figure.low), rate(figure.name, figure.high)
    if figure.low is None and figure.high is None:
        return "open"
    if figure.high is None:
        return f"at least {low}"
    if figure.low is None:
        return f"at most {high}"
    return f"{low} to {high}"


def figure_comment(figure: Figure) -> str:
    """What the points left open of a figure, "" where they tell it."""
    return "" if figure.is_told else f"left open by the points: {range_words(figure)}"


def figures_table(result: Calibration) -> PlainTable:
    """The fitted figures, each with its range and against the device's best."""

    def row(figure: Figure) -> Row:
        share = None if figure.best is None else figure.value / figure.best
        best = fmt.MISSING if figure.best is None else rate(figure.name, figure.best)
        return (
            _LABELS[figure.name],
            rate(figure.name, figure.value),
            range_words(figure),
            best,
            fmt.percent(share),
        )

    shared = [name for name in ATTENTION_RATES if getattr(result.profile, name) is None]
    caption = "best: a copy within the device's memory, a product of two large matrices"
    if shared:
        caption = f"{' and '.join(_LABELS[name] for name in shared)}: as the linear; {caption}"
    return PlainTable(
        "Fitted figures",
        ("figure", "fitted", "95 % range", "best", "share"),
        [[row(figure) for figure in result.figures]],
        caption,
    )


def points_table(result: Calibration) -> PlainTable:
    """Every point: measured, modelled, by how much that is off, and what bounds it."""

    def row(point: PointResult) -> Row:
        return (
            point.words,
            fmt.number(point.measured_seconds * 1e3),
            fmt.percent(point.spread),
            fmt.number(point.modelled_seconds * 1e3),
            fmt.percent(point.error, signed=True),
            point.linear,
            point.attention,
        )

    groups = [
        [row(point) for point in result.points if bool(point.prefill) == prefills]
        for prefills in (False, True)
    ]
    return PlainTable(
        "Step times",
        ("step", "measured\nms", "spread", "modelled\nms", "error", "linear\nlayers", "attention"),
        [group for group in groups if group],
        "rows × context; measured: the median step of a point; spread: the interquartile range of "
        "its steps over that; the last two: what bounds them in the model",
    )


def conclusions(result: Calibration) -> list[str]:
    """What there is to say of the profile, in sentences."""
    error = result.profile.fit_error
    assert error is not None
    worst = max(result.points, key=lambda point: abs(point.error))
    said = [
        f"The profile is within {fmt.percent(error.median)} of the measured step times in the "
        f"median of {len(result.points)} points, within {fmt.percent(error.worst)} at worst "
        f"({worst.words})."
    ]
    spread = median(point.spread for point in result.points)
    if error.median <= GOOD_MEDIAN and error.worst <= GOOD_WORST:
        said.append("Between these points it can stand for the device.")
    elif spread > GOOD_MEDIAN:
        said.append(
            f"The steps of one point spread by {fmt.percent(spread)} in the median: measure on a "
            "quieter machine, or take more --rounds."
        )
    else:
        said.append(
            "The device does not follow a roofline closely: take the profile for steps whose error "
            "in the table is one you can bear."
        )
    return [*said, _launch_words(result), *_open_words(result)]


def _launch_words(result: Calibration) -> str:
    host = result.profile.host
    return (
        f"Before the device starts, launching takes the host {fmt.seconds(host.replay_seconds)} "
        f"and {fmt.seconds(host.replay_seconds_per_row)} per row that decodes, "
        f"{fmt.seconds(host.eager_seconds)} and {fmt.seconds(host.eager_seconds_per_token)} per "
        f"token of a prompt; {fmt.seconds(host.tail_seconds)} follow. This is within "
        f"{fmt.percent(result.launch_error)} of a step at worst."
    )


def _open_words(result: Calibration) -> list[str]:
    """What the points leave open, and what would tell it."""
    left = {figure.name: figure for figure in result.figures if not figure.is_told}
    said = []
    if {RATES[0], LAUNCH} <= left.keys():
        del left[RATES[0]], left[LAUNCH]
        profile = result.profile
        both = profile.parts(0, 0, 0)[0] + profile.launch_overhead_seconds
        said.append(
            f"Launch and reading the weights take {fmt.seconds(both)} together; what each takes is "
            "left open. Steps bound by arithmetic would tell: a larger --batch-size or --prefill."
        )
    for name, figure in left.items():
        said.append(
            f"{_LABELS[name].capitalize()} is left open: {range_words(figure)}, "
            f"{rate(name, figure.value)} taken. What would tell: {_TOLD_BY[name]}."
        )
    return said
