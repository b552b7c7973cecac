"""When CPython's rules make the collector run, from how the count of young objects moves."""

import msgspec
import numpy as np

from engines.protocol import Int64Array
from harness.axes import Cell
from harness.collector.policy import parse_policy
from harness.collector.young_counts import unpacked
from harness.experiment.outcomes import Trials
from harness.machine.describe import Machine
from harness.not_measured import NotMeasured
from harness.result.result import Result
from harness.trial.spec import Mode, TrialResult

ByGeneration = tuple[int, int, int]
"""Of generations 0, 1 and 2."""

CADENCE_MODES: tuple[Mode, ...] = ("counts", "cadence")
"""The modes of the trials that a cell needs: what the collector does, and what moves it."""

_NEAR = 0.03


class Cadence(msgspec.Struct, frozen=True, kw_only=True):
    """What was predicted of a cell and what was observed, over ``num_steps`` steps.

    ``label`` names the cell by what differs; ``long_lived``: objects that the last full collection
    before the window left. Counts of two interpreters never compare.
    """

    label: str
    python: str
    thresholds: ByGeneration
    long_lived: int
    num_steps: int
    predicted: ByGeneration
    observed: ByGeneration

    @property
    def is_near(self) -> bool:
        """Whether generations 0 and 1 agree within 3 % or one collection, and 2 within one."""
        near = [
            abs(predicted - observed) <= max(1, _NEAR * observed * (generation < 2))
            for generation, (predicted, observed) in enumerate(
                zip(self.predicted, self.observed, strict=True)
            )
        ]
        return all(near)


class CadenceResult(Result, frozen=True, kw_only=True, tag="cadence"):
    """Everything `advise --predict` knows at its end."""

    axes: dict[str, str | int]
    cadences: list[Cadence]


def read_cadence(trials: Trials, cell: Cell, label: str) -> Cadence | NotMeasured:
    """Predicted and observed collections of a cell, or in one sentence why there are none."""
    counted, traced = (trials.counted_in(mode, cell) for mode in CADENCE_MODES)
    if counted is None or traced is None or not traced.young:
        failures = dict.fromkeys(each.reason for each in trials.failures)
        return NotMeasured(f"{label}: {'; '.join(failures) or 'its trials gave no result'}")
    state = counted.processes[0].state
    if why := _unpredictable(counted):
        return NotMeasured(f"{label}: {why}")
    changes = unpacked(traced.young)
    # What is frozen by the engine itself no collection has counted; a policy freezes after one.
    frozen = 0 if "freeze" in parse_policy(cell.gc) else state.freeze_count
    long_lived = state.tracked_objects - frozen
    machine = counted.machine or Machine()
    return Cadence(
        label=label,
        python=machine.python,
        thresholds=state.thresholds,
        long_lived=long_lived,
        num_steps=round(counted.metrics["num_steps"] or 0),
        predicted=predict(
            changes, state.thresholds, long_lived, at_once=_version(machine) < (3, 12)
        ),
        observed=counted.processes[0].collections,
    )


def _unpredictable(counted: TrialResult) -> str:
    """Why no rule here says when a trial's collector runs, or ""."""
    process, machine = counted.processes[0], counted.machine or Machine()
    if not machine.collector.startswith("generational"):
        kind = machine.collector.partition(",")[0]
        return f"the {kind} collector of CPython {machine.python} has other rules"
    if not process.state.enabled:
        return f"the collector does not run by itself under --gc {process.policy}"
    return ""


def _version(machine: Machine) -> tuple[int, ...]:
    return tuple(map(int, machine.python.split(".")[:2]))


def predict(
    changes: Int64Array, thresholds: ByGeneration, long_lived: int, *, at_once: bool
) -> ByGeneration:
    """The collections that CPython's generational collector would make (``Modules/gcmodule.c``).

    A young collection starts where the count passes the first threshold; it is of the oldest
    generation whose own count of collections passes its threshold. The oldest must also have as
    many newcomers as a quarter of ``long_lived``, the objects that its last full collection left.

    Which objects survive is not in the changes. It is assumed that what is freed is what was made
    last, so the newcomers are what is alive over the least that was alive since the last
    collection of generation 1.

    ``at_once``: a collection starts in the midst of what allocates, as up to CPython 3.11
    (`_PyObject_GC_Link`); later the evaluation loop starts it when the bytecode has ended.
    """
    young, middle, old = thresholds
    if not young:
        return (0, 0, 0)
    done = [0, 0, 0]
    count = in_middle = 0
    in_old = 1  # the window opens with a collection of generation 1
    alive = least = newcomers = 0
    total = long_lived
    for change in _runs(changes, at_once=at_once).tolist():
        if change < 0:
            alive += change
            count = max(0, count + change)
            least = min(least, alive)
            continue
        left = change
        while count + left > young:
            # All of it where the evaluation loop is asked, for it collects when the call is over.
            made = young + 1 - count if at_once else left
            alive += made
            left -= made
            count = 0
            if in_old > old and newcomers >= total // 4:
                done[2] += 1
                in_middle = in_old = newcomers = 0
                total, least = long_lived + alive, alive
            elif in_middle > middle:
                done[1] += 1
                in_middle, in_old = 0, in_old + 1
                newcomers += alive - least
                least = alive
            else:
                done[0] += 1
                in_middle += 1
        alive += left
        count += left
    return done[0], done[1], done[2]


def _runs(changes: Int64Array, *, at_once: bool) -> Int64Array:
    """The same with neighbours of one sign added up, where that makes no difference."""
    if not len(changes):
        return changes
    rises = changes > 0
    begins = rises[1:] != rises[:-1]
    if not at_once:
        begins |= rises[1:]
    return np.add.reduceat(changes, np.flatnonzero(np.r_[True, begins]))
