"""What a comparison says, in a few sentences."""

from collections.abc import Container, Iterator, Sequence

from harness.experiment.reference import references
from harness.experiment.result import CellResult, Comparison, ExperimentResult
from harness.format import capitalised, count, interval, percent, percent_range, rough_percent
from harness.machine.interpreter import VERSIONS, dotted
from harness.metrics import METRICS
from harness.render.verdict_words import REFERENCE_MEANS
from harness.report.plausible import implausible_gains
from harness.report.power import too_few_rounds, what_it_takes
from harness.report.summary import collectors_cost, median, metric_words
from harness.statistics.paired_ratio import ALPHA, MIN_ROUNDS

FULL_PASSES_FOR_A_CLAIM = 5


def conclude(result: ExperimentResult) -> list[str]:
    """Sentences on what won, what else was found, what stays open, and the collector's part."""
    cells = {cell.id: cell for cell in result.cells}
    sentences = in_short(result)
    off = references(result)
    for baseline, ours in _by_baseline(result):
        enough = [c for c in ours if c.rounds >= MIN_ROUNDS]
        sentences += _the_rest([c for c in enough if c.candidate not in off], result.tolerance)
        if _candidates(enough, off):
            sentences += _with_it_off([c for c in enough if c.candidate in off])
        if baseline in cells:
            sentences += _version(cells[baseline], result.tolerance)
            sentences += _tracked(cells[baseline], cells[ours[0].candidate])
    sentences += _hardware(result.cells)
    if len({cell.group for cell in result.cells}) > 1:
        sentences.append(
            "Cells that differ in machine, interpreter, device or workload are shown side by side, "
            "without a verdict between them."
        )
    return sentences


def in_short(result: ExperimentResult) -> list[str]:
    """Those of `conclude` that a table of changes and verdicts does not say by itself."""
    cells = {cell.id: cell for cell in result.cells}
    off = references(result)
    sentences: list[str] = []
    for baseline, ours in _by_baseline(result):
        enough = [c for c in ours if c.rounds >= MIN_ROUNDS]
        judged = _candidates(enough, off)
        if judged:
            sentences.append(_headline(judged))
        elif enough:
            sentences += _with_it_off(enough)
        sentences += implausible_gains(enough, cells, result.tolerance)
        sentences += _few_full_passes(judged, result.tolerance)
        sentences += _disagreeing_nodes(enough)
        sentences += _open_questions(judged, result.tolerance)
        sentences += _too_few_rounds([c for c in ours if c not in enough])
        if baseline in cells:
            sentences += _collector(cells[baseline], result.tolerance)
            for comparison in ours:
                sentences += _left(cells[baseline], cells[comparison.candidate])
    collects = any(each.state.enabled for cell in result.cells for each in cell.processes)
    if collects and _most_full_passes(result) < FULL_PASSES_FOR_A_CLAIM:
        sentences.append(
            f"The collector made fewer than {FULL_PASSES_FOR_A_CLAIM} full passes in each cell: "
            "too few to judge what those cost."
        )
    return sentences


def _by_baseline(result: ExperimentResult) -> Iterator[tuple[str, list[Comparison]]]:
    """Each baseline and its comparisons, the best first."""
    for baseline in dict.fromkeys(c.baseline for c in result.comparisons):
        ours = (c for c in result.comparisons if c.baseline == baseline)
        yield baseline, sorted(ours, key=_best_first)


def _candidates(comparisons: Sequence[Comparison], off: Container[str]) -> list[Comparison]:
    return [each for each in comparisons if each.candidate not in off]


def _with_it_off(comparisons: Sequence[Comparison]) -> list[str]:
    """What there is to gain at most, and that nobody should take it."""
    if not comparisons:
        return []
    named = _names(comparisons) if len(comparisons) > 1 else _in_full(comparisons[0])
    return [f"For reference, {REFERENCE_MEANS}: {named}."]


def _best_first(comparison: Comparison) -> float:
    lower_is_better = METRICS[comparison.metric].direction == "lower"
    return comparison.ratio if lower_is_better else -comparison.ratio


def _headline(comparisons: Sequence[Comparison]) -> str:
    best = next((c for c in comparisons if c.verdict == "better"), None)
    if best is None:
        if all(c.verdict == "inconclusive" for c in comparisons):
            return f"This run cannot tell whether anything beats {comparisons[0].baseline}."
        if len(comparisons) == 1 and comparisons[0].verdict == "worse":
            return f"Worse: {_in_full(comparisons[0])}."
        return f"Nothing was found to beat {comparisons[0].baseline}."
    return f"Best: {_in_full(best)}."


def _in_full(comparison: Comparison) -> str:
    return (
        f"{comparison.candidate}, {metric_words(comparison.metric)} {_change(comparison)} against "
        f"{comparison.baseline} (95 %: {interval(comparison.ci95)})"
    )


def _the_rest(comparisons: Sequence[Comparison], tolerance: float) -> list[str]:
    better = [c for c in comparisons if c.verdict == "better"][1:]
    worse = [c for c in reversed(comparisons) if c.verdict == "worse" and len(comparisons) > 1]
    same = [c for c in comparisons if c.verdict == "same"]
    named = (
        ("Also better", better),
        ("Worse", worse),
        (f"The same within {rough_percent(tolerance)}", same),
    )
    return [f"{label}: {_names(found)}." for label, found in named if found]


def _few_full_passes(comparisons: Sequence[Comparison], tolerance: float) -> list[str]:
    """Which verdicts the code alone would not give, and rest on few full passes."""
    sentences = []
    for each in comparisons:
        if each.verdict not in ("better", "worse") or each.apart is None:
            continue
        if any(passes.per_serving is not None for passes in each.apart.full_passes):
            continue  # it rests on how often they come, which was counted
        low, high = each.apart.code.ci95
        seen = max(passes.count for passes in each.apart.full_passes)
        is_like = low <= 1 + tolerance and high >= 1 - tolerance
        if is_like and seen < FULL_PASSES_FOR_A_CLAIM:
            passes = "one full pass" if seen == 1 else f"{seen} full passes"
            sentences.append(
                f"{each.candidate} is {each.verdict} because of full passes alone, and this run "
                f"has seen only {passes}: more rounds would tell."
            )
    return sentences


def _disagreeing_nodes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What each node says of a change about which they differ by more than noise."""
    for each in comparisons:
        if each.nodes_p is not None and each.nodes_p < ALPHA:
            told = ", ".join(
                f"{percent(node.ratio - 1, signed=True)} on {node.node}" for node in each.by_node
            )
            yield (
                f"Nodes disagree about {each.candidate} (p = {each.nodes_p:.2g}): {told}; look at "
                "one node at a time before you trust their average."
            )


def _open_questions(comparisons: Sequence[Comparison], tolerance: float) -> list[str]:
    """What stays open, and the rounds it would take for the one that is hardest to tell."""
    unresolved = [c for c in comparisons if c.verdict == "inconclusive"]
    if not unresolved:
        return []
    hardest = max(unresolved, key=lambda c: c.mde)
    takes = what_it_takes(hardest.rounds, hardest.mde, tolerance)
    if hardest.mde <= tolerance < abs(hardest.ratio - 1):
        takes = (
            f"{hardest.rounds} rounds detect changes from {percent(hardest.mde)}, but its interval "
            f"({interval(hardest.ci95)}) leaves no verdict; more rounds narrow it"
        )
    return [f"Inconclusive: {_names(unresolved)}; {takes}."]


def _too_few_rounds(comparisons: Sequence[Comparison]) -> list[str]:
    few = too_few_rounds(comparisons)
    return [f"{capitalised(few)}."] if few else []


def _collector(baseline: CellResult, tolerance: float) -> list[str]:
    """What the baseline would gain with no collector: the most that sparing it can explain."""
    effect = collectors_cost(baseline)
    if effect is None:
        return []
    ci95 = baseline.metrics["gc_effect"].ci95
    if ci95 is not None and ci95[0] <= 0:
        return [_no_cost_shown(baseline.id, ci95, tolerance)]
    if effect <= 0:
        return [
            f"The collector is not to blame: without it {baseline.id} spends no less host time."
        ]
    less = percent(effect / (1 + effect))
    if ci95 is not None:
        # No estimate beside it: a verdict on the same two cells has one of another metric.
        low, high = (end / (1 + end) for end in ci95)
        less = f"{percent_range(low, high)} (95 %)"
    share = median(baseline, "gc_pause_share")
    pauses = "" if share is None else f"; its pauses take {percent(share)} of the wall time"
    return [f"Without the collector, {baseline.id} spends {less} less host time{pauses}."]


def _no_cost_shown(name: str, ci95: tuple[float, float], tolerance: float) -> str:
    if ci95[1] > tolerance:
        low, high = (percent(end, signed=True) for end in ci95)
        return (
            f"What the collector costs {name} stays open: between {low} and {high} of its host "
            "time without one (95 %)."
        )
    return (
        f"The collector is not to blame: it costs {name} at most {percent(max(ci95[1], 0.0))} of "
        f"its host time without one (95 %: {percent_range(*ci95, signed=True)})."
    )


def _version(baseline: CellResult, tolerance: float) -> list[str]:
    """Which versions of Python have another young threshold, where collecting is worth a thought
    and the interpreter's own threshold was in force.
    """
    cost = collectors_cost(baseline) or median(baseline, "gc_pause_share") or 0.0
    in_force = {each.state.thresholds[0] for each in baseline.processes if each.collections[0]}
    alike = [version for version, known in VERSIONS.items() if {known.young_threshold} == in_force]
    others: dict[int, list[str]] = {}
    for version, (young, _) in VERSIONS.items():
        if version not in alike:
            others.setdefault(young, []).append(dotted(version))
    is_set = any("threshold" in each.policy for each in baseline.processes)
    if cost <= tolerance or is_set or not (alike and others):
        return []
    here = " and ".join(map(dotted, alike))
    there = ", ".join(
        f"at {young:,} on Python {' and '.join(names)}" for young, names in others.items()
    )
    return [
        f"The Python version decides how often {baseline.id} collects: a young collection starts "
        f"at {in_force.pop():,} new objects on Python {here}, {there}. Measure on the version that "
        "you serve with."
    ]


def _tracked(baseline: CellResult, other: CellResult) -> list[str]:
    """What feeds the collector, where the two differ in it."""
    ours, theirs = (median(cell, "tracked_peak_per_step") for cell in (baseline, other))
    if ours is None or theirs is None or f"{ours:,.0f}" == f"{theirs:,.0f}":
        return []
    return [
        f"At its peak, a step of {baseline.id} has {ours:,.0f} new tracked objects alive, "
        f"a step of {other.id} {theirs:,.0f}."
    ]


_LEFT = (
    ("leaked_objects_per_step", "A step of {} leaves {} tracked objects behind for good"),
    ("leaked_blocks_per_step", "A step of {} leaves {} blocks of memory behind for good"),
    ("leaked_bytes_per_step", "A step of {} leaves {} bytes behind for good"),
    ("leaked_bytes_per_request", "A request of {} leaves {} bytes behind for good"),
    ("leaked_bytes_per_block", "A block of the cache of {} leaves {} bytes behind for good"),
    ("cyclic_garbage_per_step", "A step of {} leaves {} objects that only a collection can free"),
    ("explicit_collections", "{} calls the collector by hand {} times"),
)


def _left(baseline: CellResult, other: CellResult) -> list[str]:
    """What stays when all requests have gone, and who collects by hand, where the two differ."""
    sentences = []
    for name, sentence in _LEFT:
        ours, theirs = (median(cell, name) for cell in (baseline, other))
        if ours is None or theirs is None:
            continue
        # Less than nothing is not left: something was freed late, such as a cache.
        ours, theirs = max(ours, 0.0), max(theirs, 0.0)
        if METRICS[name].differs(ours, theirs):
            sentences.append(
                f"{sentence.format(other.id, count(theirs))}, {baseline.id} {count(ours)}."
            )
    return sentences


def _hardware(cells: Sequence[CellResult]) -> list[str]:
    """How near to the device's limit the one came that was nearest, where there is a real one."""
    shares = {cell.id: median(cell, "achieved_serial_share") for cell in cells}
    known = {name: share for name, share in shares.items() if share is not None}
    if not known:
        return []
    nearest = max(known, key=lambda name: known[name])
    return [
        f"While the device was busy, {nearest} came to {percent(known[nearest])} of its limit: "
        "matrix products, attention and logits one after the other, at the rates of large copies "
        "and products that the device sustained."
    ]


def _most_full_passes(result: ExperimentResult) -> float:
    """In the timed trials of any cell, where they were told apart, or in those that counted."""
    apart = (
        passes.count
        for comparison in result.comparisons
        if comparison.apart is not None
        for passes in comparison.apart.full_passes
    )
    return max([*apart, *map(_full_passes, result.cells)])


def _full_passes(cell: CellResult) -> float:
    """Of the trials that counted; of the last trial where no metric counts them."""
    counted = cell.metrics.get("gc_collections_gen2")
    over_trials = sum(sample or 0 for sample in counted.samples) if counted else 0
    return max(over_trials, sum(process.collections[2] for process in cell.processes))


def _names(comparisons: Sequence[Comparison]) -> str:
    return "; ".join(f"{c.candidate} ({_change(c)})" for c in comparisons)


def _change(comparison: Comparison) -> str:
    return percent(comparison.ratio - 1, signed=True)
