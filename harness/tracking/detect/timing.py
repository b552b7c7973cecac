"""From the points of a timing to what the search needs, and back to changes."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from harness.statistics.mixture import FloatArray
from harness.tracking.detect.change import Certainty, Change, Findings, Rerun, verdict
from harness.tracking.detect.evidence import Line, StepEvidence
from harness.tracking.detect.locate import PairRerun, Range
from harness.tracking.detect.scale import Scale
from harness.tracking.detect.search import search
from harness.tracking.detect.series import PointColumns, Series
from harness.tracking.detect.shapes import fit_level
from harness.tracking.detect.weigh import LEAST_NIGHTS, StepLimits, WeighedStep

BADLY = 3.0
"""A night counts less when its interval is wider than the usual one by more than this."""

AskRerun = Callable[[str, str], Rerun | None]
"""A re-run of two commits, the one before and a later one."""


def evidence_of(series: Series, points: PointColumns) -> tuple[StepEvidence, Scale]:
    """Of points that all have finite values."""
    scale = Scale.of(points.values)
    least = max(series.noise_floor / 10, 1e-4)
    return StepEvidence(scale.to(points.values), _weights(points), least), scale


def examine_timing(
    series: Series,
    points: PointColumns,
    notes: list[str],
    *,
    reruns: Sequence[Rerun],
    resets: Sequence[int],
    ask: AskRerun | None,
    limits: StepLimits,
    limits_on: Mapping[int, StepLimits],
) -> Findings:
    """``resets``, where a level begins by decree, and ``limits_on`` are indices of ``points``."""
    evidence, scale = evidence_of(series, points)
    commits = points.commits

    def is_large(level: float, rise: float) -> bool:
        return series.differs(scale.back(level), scale.back(level + rise))

    def asked(before: int, after: int, night: int) -> PairRerun | None:
        pair = commits[before], commits[after]
        answer = ask(*pair) if ask and pair[0] != pair[1] else None
        if answer is None:
            return None
        return _measured(answer._replace(newest=commits[night]), commits, scale, notes)

    known = [run for run in (_measured(r, commits, scale, notes) for r in reruns) if run]
    walk = search(evidence, is_large, known, resets, asked if ask else None, limits, limits_on)
    changes = tuple(_change(series, commits, scale, step) for step in walk.steps)
    last = len(points) - 1
    drift = _drift(evidence.line(walk.starts, last), scale) if last in walk.drifts else ""
    if drift:
        notes.append(f"drifts slowly: a straight line says it as well as a step ({drift})")
    now = fit_level(evidence.rows(walk.starts, np.array([last])), evidence.least_scale)
    level, noise = scale.back(float(now.level[0])), float(now.scale[0])
    is_enough = last + 1 >= LEAST_NIGHTS
    if not is_enough:
        notes.append(f"{last + 1} points, and a timing needs {LEAST_NIGHTS}")
    return Findings(is_enough, changes, level, noise, tuple(notes), drift=drift)


def _drift(line: Line, scale: Scale) -> str:
    """How far it has gone."""
    size = (
        f"{100 * math.expm1(line.rise):+.0f} %" if scale.is_log else f"{line.rise * scale.unit:+g}"
    )
    return f"{size} over {line.nights} points"


def _change(series: Series, commits: Sequence[str], scale: Scale, step: WeighedStep) -> Change:
    from scipy.special import stdtr, stdtrit

    before, after = scale.back(step.level), scale.back(step.level + step.rise)
    freedom = max(step.freedom, 1)
    reach = float(stdtrit(freedom, 0.975)) * step.error
    ends = [scale.back(step.level + step.rise + by) for by in (-reach, reach)]
    least, ratio, most = (
        value / before if before > 0 and value > 0 else math.nan
        for value in (ends[0], after, ends[1])
    )
    place, low = step.where.place, step.where.low
    # A re-run is a ratio, which says nothing to plain multiples.
    pair = tuple(commits[n] for n in (scale.is_log and step.next_pair) or ())
    certainty: Certainty = "machine" if commits[place - 1] == commits[place] else step.certainty
    return Change(
        series.name,
        series.metric,
        commits[low - 1],
        commits[place],
        place,
        step.night,
        _commits(step.where, commits),
        _commits(step.named, commits),
        (pair[0], pair[1]) if len(set(pair)) > 1 else None,
        before,
        after,
        ratio,
        (least, most),
        2 * float(stdtr(freedom, -abs(step.rise) / step.error)),
        verdict(series, before, after),
        certainty,
    )


def _commits(where: Range, commits: Sequence[str]) -> tuple[str, ...]:
    """Those of a range; what stands before it, too, has not changed there."""
    known = dict.fromkeys(commits[where.low : where.high + 1])
    known.pop(commits[where.low - 1], None)
    return tuple(known) or (commits[where.place],)


def _measured(
    run: Rerun, commits: Sequence[str], scale: Scale, notes: list[str]
) -> PairRerun | None:
    """A re-run by the points it lies between; None, and a note, where it lies between none."""
    try:
        rise, error = run.log
    except ValueError as why:
        notes.append(str(why))
        return None
    if run.before not in commits or run.after not in commits:
        notes.append(f"a re-run of {run.before[:12]} and {run.after[:12]} is of no two points here")
        return None
    before = len(commits) - 1 - commits[::-1].index(run.before)
    after = next((n for n in range(before + 1, len(commits)) if commits[n] == run.after), None)
    if after is None:
        notes.append(f"a re-run names {run.before[:12]} before {run.after[:12]}, which came later")
        return None
    if not scale.is_log:
        notes.append("a re-run is a ratio, and this series has values that are not above 0")
        return None
    night = commits.index(run.newest) if run.newest in commits else after
    return PairRerun(before, after, rise, error, max(night, after))


def _weights(points: PointColumns) -> FloatArray:
    """A point's own, or less where its interval is much wider than the usual one."""
    size = np.abs(points.values)
    widths = (points.high - points.low) / np.where(size > 0, size, 1.0)
    for n in np.flatnonzero(np.isnan(widths)).tolist():
        widths[n] = _width(points.samples[n], float(size[n]) or 1.0)
    known = np.isfinite(widths) & (widths > 0)
    weights = points.weights.copy()
    if known.any():
        usual = np.median(widths[known])
        weights[known] *= np.clip(BADLY * usual / widths[known], 0.1, 1.0)
    return weights


def _width(samples: Sequence[float | None], size: float) -> float:
    """Relative width of an interval made from the samples; NaN where there is none."""
    kept = np.array([s for s in samples if s is not None and math.isfinite(s)])
    if len(kept) < 3:
        return math.nan
    return float(4 * kept.std(ddof=1) / math.sqrt(len(kept))) / size
