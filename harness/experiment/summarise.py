"""From stored trials to an experiment's result: samples by round, pairs, verdicts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from harness.axes import Cell, values
from harness.experiment.by_node import ByNode, node_ratios, with_nodes
from harness.experiment.comparisons import comparisons
from harness.experiment.composed import (
    CellTrials,
    WholeRatio,
    composed_ratio,
    contradicts,
    long_run_value,
    step_parts,
)
from harness.experiment.grid import groups, traits, varying
from harness.experiment.machine_speed import speed_changes
from harness.experiment.outcomes import Samples, Trials
from harness.experiment.plan import Plan, without_collector
from harness.experiment.result import (
    Apart,
    CellResult,
    Comparison,
    ExperimentResult,
    MetricSamples,
    cell_id,
)
from harness.experiment.same_origin import mixed
from harness.experiment.same_work import cells_of_other_work
from harness.experiment.store import TrialKey
from harness.format import percent, percent_range
from harness.machine.describe import Machine
from harness.metrics import METRICS, Metric
from harness.not_measured import NotMeasured
from harness.result.result import ReplayedWorkload
from harness.statistics.paired_ratio import FEWEST_PAIRS, paired_ratio
from harness.trial.arrival_fidelity import arrival_words
from harness.trial.spec import TrialFailure, TrialResult


def summarise(
    plan: Plan,
    outcomes: Mapping[TrialKey, TrialResult | TrialFailure],
    *,
    machine: Machine,
    workloads: list[ReplayedWorkload],
    command: str,
    notes: Sequence[str] = (),
) -> ExperimentResult:
    """What the trials so far say. Cells without any usable trial are left out and noted."""
    trials = Trials(plan, outcomes)
    axes = varying(plan.cells)
    ids = {cell: cell_id(cell, axes) for cell in trials.timings}
    group_of = dict(zip(plan.cells, groups(plan.cells), strict=True))
    sides = trials.sides()
    cells = [
        _cell(trials, sides, cell, ids[cell], group_of[cell])
        for cell in plan.cells
        if trials.timings[cell] or ("counts", cell) in trials.counted
    ]
    more = list(notes)
    measured = {cell.id for cell in cells}
    untimed = {cell: why for cell in plan.cells if (why := trials.why_untimed(cell)) is not None}
    more += [
        f"No result of {ids[cell]}."
        for cell in plan.cells
        if ids[cell] not in measured and cell not in untimed
    ]
    more += _repeated(trials, ids)
    more += _moved_by_the_probe(trials, ids)
    more += _not_as_scheduled(trials, ids)
    more += _preempted(trials, ids)
    differing = cells_of_other_work(plan, trials, ids)
    blended = mixed(trials.results)
    more += [*differing.apart, *_left_out(trials.invalid)]
    compared, no_ratio = list[Comparison](), list[str]()
    if not blended:
        if not trials.nodes:  # several machines need not be equally fast
            more += speed_changes(plan.rotations, trials.timings)
        compared, no_ratio = _comparisons(
            plan, trials.at_usual_speed(), ids, group_of, differing.cells | untimed.keys()
        )
    commits = {r.code_commit for rounds in trials.timings.values() for r in rounds.values()}
    return ExperimentResult(
        name=plan.name,
        machine=machine,
        workloads=workloads,
        seed=plan.seed,
        decide=list(dict.fromkeys(plan.decide)),
        tolerance=plan.tolerance,
        cells=cells,
        comparisons=compared,
        failures=trials.failures,
        notes=more,
        not_compared=[*differing.sentences, *blended, *no_ratio],
        missing=[f"No result of {ids[cell]}{why and f': {why}'}." for cell, why in untimed.items()],
        command=command,
        code_commits=sorted(commits),
        nodes=trials.nodes,
    )


def _left_out(invalid: Sequence[TrialResult]) -> list[str]:
    """How many trials are not used, with the first reason of either kind."""
    kinds = [[each for each in invalid if each.recurs is recurs] for recurs in (False, True)]
    return [
        f"{len(found)} trial{'s' * (len(found) > 1)} left out: {found[0].invalid}."
        for found in kinds
        if found
    ]


def _cell(
    trials: Trials, sides: Mapping[Cell, CellTrials], cell: Cell, name: str, group: int
) -> CellResult:
    rounds = list(trials.timings[cell].values())
    metrics = {}
    for metric in METRICS.values():
        counted = trials.counted_value(cell, metric)
        samples: Samples = [counted] if counted is not None else trials.samples(cell, metric.name)
        effect = _gc_effect(trials, sides, cell) if metric.name == "gc_effect" else {}
        samples = effect.pop("samples", samples)
        known = [sample for sample in samples if sample is not None]
        if known:
            exact = metric.kind == "exact" and traits(cell).is_exact and counted is not None
            metrics[metric.name] = MetricSamples(
                unit=metric.unit,
                direction=metric.direction,
                kind="exact" if exact else "timing",
                median=float(np.median(known)),
                samples=samples,
                **(effect or _in_the_long_run(metric, sides[cell])),
            )
    shown = rounds[len(rounds) // 2] if rounds else trials.counted["counts", cell]
    return CellResult(
        id=name,
        axes=values(cell),
        group=group,
        samples=len(rounds),
        metrics=metrics,
        processes=shown.processes,
        tokens_sha256=sorted({result.tokens_sha256 for result in rounds or [shown]}),
        text_sha256=sorted({result.text_sha256 for result in rounds or [shown]} - {""}),
        steady_state=shown.steady_state,
        delivered=shown.delivered,
        engine_state=shown.engine_state,
        interpreter=shown.interpreter,
        step=step_parts(sides[cell]),
    )


def _in_the_long_run(metric: Metric, side: CellTrials) -> dict[str, Any]:
    value = long_run_value(metric, side)
    return {} if value is None else {"estimate": value}


def _gc_effect(trials: Trials, sides: Mapping[Cell, CellTrials], cell: Cell) -> dict[str, Any]:
    """`MetricSamples`' of host time over that of the same cell without a collector, less one.

    Nothing where there is none such; no estimate where there are too few rounds.
    """
    partner = next(
        (
            other
            for other in trials.timings
            if other.gc == "disabled"
            and without_collector(other) == without_collector(cell)
            and other.heap_objects == cell.heap_objects
        ),
        None,
    )
    if partner is None or partner == cell:
        return {}
    rounds = [
        both
        for both in trials.pairs(partner, cell, _HOST.name)
        if all(each.metrics[_HOST.name] for each in both)
    ]
    effects = {
        id(mine): (mine.metrics[_HOST.name] or 0.0) / (without.metrics[_HOST.name] or 1.0) - 1
        for without, mine in rounds
    }
    if not effects:
        return {}
    mine = trials.timings[cell]
    numbers = range(1, trials.num_rounds + 1)
    found = {"samples": [effects.get(id(mine.get(number))) for number in numbers]}
    if len(effects) < FEWEST_PAIRS:
        return found
    ratio = composed_ratio(_HOST, rounds, sides[partner], sides[cell], 1).ratio
    ci95 = ratio.ci95[0] - 1, ratio.ci95[1] - 1
    return found | {"estimate": ratio.ratio - 1, "ci95": ci95}


def _repeated(trials: Trials, ids: dict[Cell, str]) -> list[str]:
    """A sentence for each exact cell whose counts differ from trial to trial."""
    sentences = []
    for cell, by_count in trials.counts.items():
        if traits(cell).is_exact and len(by_count) > 1:
            found = ", ".join(f"{_triple(c)} ({n} times)" for c, n in by_count.most_common())
            sentences.append(f"{ids[cell]}: trials that should count alike did not: {found}.")
    again = {n for by_count in trials.counts.values() if (n := by_count.total()) > 1}
    if again and not sentences and all(traits(cell).is_exact for cell in trials.counts):
        sentences.append(f"Where counts were repeated they were equal in all {max(again)} trials.")
    return sentences


def _moved_by_the_probe(trials: Trials, ids: dict[Cell, str]) -> list[str]:
    """A sentence for each cell whose exact counts are others while the probe watches."""
    sentences = []
    for (mode, cell), watched in trials.counted.items():
        alone = trials.counted.get(("counts", cell))
        if mode != "probed" or alone is None:
            continue
        with_probe, without = (result.processes[0].collections for result in (watched, alone))
        if with_probe != without:
            sentences.append(
                f"{ids[cell]}: {_triple(without)} collections, {_triple(with_probe)} with the "
                "probe watching; the former are shown."
            )
    return sentences


def _triple(collections: tuple[int, int, int]) -> str:
    return "/".join(f"{count:,}" for count in collections)


def _not_as_scheduled(trials: Trials, ids: dict[Cell, str]) -> list[str]:
    """A sentence for each cell to which requests came otherwise than the workload says."""
    sentences = []
    for cell, rounds in trials.timings.items():
        told = [r.delivered for r in rounds.values() if r.delivered and r.delivered.wrong]
        if told:
            sentences.append(
                f"{ids[cell]}: requests came {arrival_words(told[0])} "
                f"({len(told)} of {len(rounds)} trials)."
            )
    return sentences


_HOST = METRICS["host_time_per_step"]

_PREEMPTED = 0.1
"""Share of the pauses' time without a core from which on pauses are not the collector's alone."""


_MOST_NAMED = 3


def _preempted(trials: Trials, ids: dict[Cell, str]) -> list[str]:
    """A sentence on the cells whose pauses other programs have made longer, if there are any."""
    shares: dict[str, float] = {}
    for cell in trials.timings:
        samples = trials.samples(cell, "gc_pause_preempted")
        known = [sample for sample in samples if sample is not None]
        if known and (share := float(np.median(known))) > _PREEMPTED:
            shares[ids[cell]] = max(share, shares.get(ids[cell], 0.0))
    if not shares:
        return []
    least, most = min(shares.values()), max(shares.values())
    span = percent_range(least, most) if most > least else percent(most)
    more = f" and {len(shares) - _MOST_NAMED} more" if len(shares) > _MOST_NAMED else ""
    return [
        f"{', '.join(list(shares)[:_MOST_NAMED])}{more}: in {span} of the time of pauses the "
        "thread that collected had no core, so other programs have made them longer."
    ]


def _comparisons(
    plan: Plan,
    trials: Trials,
    ids: dict[Cell, str],
    group_of: dict[Cell, int],
    without: Collection[Cell],
) -> tuple[list[Comparison], list[str]]:
    """Each cell against its group's baseline, and a sentence for each that cannot be.

    None has one of the cells ``without``. Comparisons that are decided by the same metric are one
    family.
    """
    if len(plan.cells) > 1 and trials.num_rounds < FEWEST_PAIRS:
        rounds = "round" if trials.num_rounds == 1 else "rounds"
        return [], [f"No ratios: {trials.num_rounds} {rounds}, an interval needs {FEWEST_PAIRS}."]
    found: dict[Cell, Comparison] = {}
    missing: list[str] = []
    sides = trials.sides()
    for metric in dict.fromkeys(plan.decide):
        family: list[tuple[Cell, Cell, WholeRatio]] = []
        of_nodes: list[ByNode] = []
        pairs = [
            (baseline, cell)
            for cell in plan.cells
            if plan.decide[group_of[cell]] == metric
            and cell != (baseline := plan.cells[plan.baselines[group_of[cell]]])
            and not {baseline, cell}.intersection(without)
        ]
        for baseline, cell in pairs:
            found_ratio = _ratio(plan, trials, sides, baseline, cell, METRICS[metric], len(pairs))
            if isinstance(found_ratio, NotMeasured):
                why = found_ratio.reason
                missing.append(f"No ratio of {ids[cell]} to {ids[baseline]}: {why}.")
            else:
                family.append((baseline, cell, found_ratio[0]))
                of_nodes.append(found_ratio[1])
        ratios = [whole.ratio for *_, whole in family]
        direction = METRICS[metric].direction
        assert direction != "neither"
        names = [(ids[baseline], ids[cell]) for baseline, cell, _ in family]
        missing += _contradictions(names, [whole.apart for *_, whole in family])
        compared = comparisons(metric, names, ratios, direction, plan.tolerance)
        compared = with_nodes(compared, of_nodes)
        found |= {
            cell: _unless_contradicted(each, whole.apart)
            for (_, cell, whole), each in zip(family, compared, strict=True)
        }
    return [found[cell] for cell in plan.cells if cell in found], missing


def _ratio(
    plan: Plan,
    trials: Trials,
    sides: Mapping[Cell, CellTrials],
    baseline: Cell,
    cell: Cell,
    metric: Metric,
    family: int,
) -> tuple[WholeRatio, ByNode] | NotMeasured:
    """The paired ratio and what each node says of it, or why there is none.

    Paired with the copy of the baseline that has taken turns with the cell, if one has.
    """
    rotation = next(rotation for rotation in plan.timed if cell in rotation)
    copies = [
        each
        for each in trials.timings
        if each == baseline or (each not in plan.cells and _is_copy(each, baseline))
    ]
    beside = next((each for each in copies if each in rotation), baseline)
    rounds = trials.pairs(beside, cell, metric.name)
    if len(rounds) < FEWEST_PAIRS:
        return NotMeasured(f"{len(rounds)} rounds have both, an interval needs {FEWEST_PAIRS}")
    values = [result.metrics[metric.name] or 0.0 for both in rounds for result in both]
    if min(values) <= 0:
        return NotMeasured(f"{metric.name} is zero in some trials")
    nodes = node_ratios(metric.name, rounds)
    if not metric.full_passes:
        return WholeRatio(paired_ratio(values[::2], values[1::2], family), None), nodes
    before = [result for each in copies for result in sides[each].results]
    side = sides[beside]._replace(results=before)
    return composed_ratio(metric, rounds, side, sides[cell], family), nodes


def _contradictions(names: Sequence[tuple[str, str]], parts: Sequence[Apart | None]) -> list[str]:
    """A sentence for each cell whose windows had other full passes than the long run."""
    passes = {
        name: of
        for both, apart in zip(names, parts, strict=True)
        if apart is not None
        for name, of in zip(both, apart.full_passes, strict=True)
        if contradicts(of)
    }
    return [
        f"No verdict on {name}: {of.trials} windows had {of.count} full passes where "
        f"{(of.per_serving or 0) * of.trials:.1f} come in the long run."
        for name, of in passes.items()
    ]


def _unless_contradicted(comparison: Comparison, apart: Apart | None) -> Comparison:
    """With its parts; without a verdict where windows had other full passes than the long run."""
    if apart is None or not any(map(contradicts, apart.full_passes)):
        return msgspec.structs.replace(comparison, apart=apart)
    return msgspec.structs.replace(comparison, apart=apart, verdict="inconclusive")


def _is_copy(cell: Cell, of: Cell) -> bool:
    return msgspec.structs.replace(cell, copy=of.copy) == of
