"""Rounds: interleaved, stored one by one, resumed without a gap; with trials that are made up."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import pytest
from small import CELL, TRIAL_SECONDS, Calls, MemoryStore, answer, plan, process, summary

from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.outcomes import Trials
from harness.experiment.plan import beside_baseline, counting_modes, timing_round
from harness.experiment.rounds import Precision, Rounds
from harness.experiment.store import RunStore, StoreError
from harness.machine.describe import cores_usable
from harness.trial.spec import Trial, TrialFailure, TrialResult

CELLS = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "freeze", "disabled")]
NEVER = Precision(0, 0)


class Machine:
    """Answers trials, notes them, and can be told to fail, to be busy or to be interrupted."""

    def __init__(self) -> None:
        self.asked: list[Trial] = []
        self.broken: set[Cell] = set()
        self.busy: Counter[Cell] = Counter()
        self.interrupt_at = 0

    def __call__(self, trials: Sequence[Trial]) -> Iterator[TrialResult | TrialFailure]:
        for trial in trials:
            if len(self.asked) + 1 == self.interrupt_at:
                raise KeyboardInterrupt
            self.asked.append(trial)
            yield self._answer(trial)

    def _answer(self, trial: Trial) -> TrialResult | TrialFailure:
        if trial.cell in self.broken:
            fields = {"cell": trial.cell, "mode": trial.mode, "seed": trial.seed}
            return TrialFailure(**fields, kind="crashed", reason="it fell over")
        busy = self.busy[trial.cell] > 0
        self.busy[trial.cell] -= busy
        seconds = 1 + trial.seed % 997 / 1e5 + len(trial.cell.gc) / 10
        metrics = {"host_time_per_step": seconds, "request_throughput": 1 / seconds}
        return answer(trial, metrics, invalid="the machine was too busy" if busy else "")


def rounds(machine, of, store=None, batch=2, **fields) -> Rounds:
    executor = Calls(machine, batch)
    return Rounds(of, store or MemoryStore(), executor, lambda turn, outcome: None, **fields)


def run(machine, of, store=None, **fields) -> Rounds:
    under_way = rounds(machine, of, store, **fields)
    under_way.run(lambda outcomes: summary(of, outcomes), NEVER)
    return under_way


def test_who_is_only_of_use_beside_one_that_fails_is_not_measured_alone():
    machine = Machine()
    machine.broken = {CELLS[1]}
    cells = [*CELLS[:2], CELLS[2], msgspec.structs.replace(CELLS[2], copy=1)]
    run(machine, plan(cells, rotations=[cells[:2], cells[2:]], slice_steps=25))
    asked = Counter(trial.cell for trial in machine.asked[1:])  # the first one wakes the machine
    assert asked == {cells[0]: 2, cells[1]: 2, cells[2]: 7, cells[3]: 7}


@pytest.mark.parametrize(("broken", "times"), [(0, [2, 2, 2]), (1, [7, 2, 7]), (2, [7, 7, 2])])
def test_those_that_take_turns_go_on_without_one_that_fails_but_for_their_baseline(broken, times):
    machine, of = Machine(), plan(CELLS, rotations=[CELLS], slice_steps=25)
    machine.broken = {CELLS[broken]}
    result = summary(of, run(machine, of).outcomes)
    asked = Counter(trial.cell for trial in machine.asked[1:])
    assert [asked[cell] for cell in CELLS] == times
    assert len(result.comparisons) == (broken > 0)
    assert len(result.missing) == 1


def taking_turns(**changes):
    """A plan of twelve cells in two rotations, each with a copy of the baseline."""
    cells = [msgspec.structs.replace(CELL, batch_size=size) for size in range(8, 20)]
    of = plan(cells, **changes)
    rotations = beside_baseline(cells, of.baselines, lambda cell: True)
    return msgspec.structs.replace(of, rotations=rotations, slice_steps=25)


def test_each_cell_takes_turns_with_a_copy_of_its_baseline():
    of = taking_turns()
    first = of.cells[0]
    assert [len(rotation) for rotation in of.rotations] == [10, 3]
    assert [cell for rotation in of.rotations for cell in rotation[1:]] == of.cells[1:]
    assert {msgspec.structs.replace(rotation[0], copy=0) for rotation in of.rotations} == {first}
    assert len({rotation[0] for rotation in of.rotations}) == 2
    batches = []
    machine = Machine()
    under_way = rounds(lambda trials: batches.append(trials) or machine(trials), of)
    under_way.run(lambda outcomes: summary(of, outcomes), NEVER)
    assert [len(batch) for batch in batches[1:]].count(10) == 7
    assert {len(batch) for batch in batches[1:]} == {3, 10}
    assert all(trial.slice_steps == 25 for batch in batches[1:] for trial in batch)


def test_none_takes_turns_where_one_cannot_or_there_is_nothing_beside_it():
    cells = taking_turns().cells
    assert beside_baseline(cells, [0], lambda cell: cell != cells[3]) == []
    assert beside_baseline(cells[:1], [0], lambda cell: True) == []


def test_a_rotation_is_measured_again_as_a_whole():
    of = taking_turns(rounds=1)
    machine = Machine()
    machine.busy[of.cells[-1]] = 1
    under_way = run(machine, of)
    assert under_way.repeated == 3
    assert len(machine.asked) == 1 + 13 + 3
    assert not any(outcome.invalid for outcome in under_way.outcomes.values())


def test_a_rotation_that_was_cut_short_is_run_again_as_a_whole():
    of = taking_turns(rounds=1)
    whole = run(Machine(), of).outcomes
    lost = next(key for key in whole if key.round == 1)
    machine = Machine()
    run(machine, of, outcomes={key: each for key, each in whole.items() if key != lost})
    (size,) = [len(rotation) for rotation in of.rotations if whole[lost].cell in rotation]
    assert len(machine.asked) == 1 + size


def cells_by_round(trials: list[Trial], size: int) -> list[tuple[Cell, ...]]:
    return [tuple(t.cell for t in trials[i : i + size]) for i in range(0, len(trials), size)]


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_each_round_has_every_cell_once_in_an_order_of_its_own(batch):
    machine, of = Machine(), plan(CELLS, rounds=20)
    run(machine, of, batch=batch)
    orders = cells_by_round(machine.asked[1:], len(CELLS))
    assert len(orders) == 20
    assert all(set(order) == set(CELLS) for order in orders)
    assert len(set(orders)) > 3


def test_the_seed_decides_the_order_and_the_phases():
    def asked(seed: int) -> list[Trial]:
        machine = Machine()
        run(machine, plan(CELLS, seed=seed))
        return machine.asked

    assert asked(3) == asked(3)
    assert [t.cell for t in asked(3)] != [t.cell for t in asked(4)]
    by_round = [{t.seed for t in asked(3)[i : i + 3]} for i in range(1, 22, 3)]
    assert all(len(seeds) == 1 for seeds in by_round), "cells of a round share their phase"
    assert len(set.union(*by_round)) == 7


def test_the_first_trial_is_thrown_away():
    machine, of = Machine(), plan(CELLS, rounds=2)
    told = []
    store = MemoryStore()
    under_way = Rounds(of, store, Calls(machine), lambda turn, outcome: told.append(turn))
    under_way.run(lambda outcomes: summary(of, outcomes), NEVER)
    assert len(machine.asked) == 1 + 6
    assert len(told) == len(store.trials) == len(under_way.outcomes) == 6


def test_counting_trials_come_first_and_once_for_all_that_they_stand_for():
    machine, of = Machine(), plan(CELLS, rounds=1, extra_modes=["counts", "tracked"])
    run(machine, of)
    counting = [(t.mode, t.cell.gc) for t in machine.asked[:4]]
    assert counting == [
        ("counts", "default"),
        ("counts", "freeze"),
        ("counts", "disabled"),
        ("tracked", "disabled"),
    ]
    assert all(t.mode == "timing" for t in machine.asked[4:])
    kept = [bool(t.rows_path) for t in machine.asked]
    assert kept == [False] * 4 + [True] * 3, "rows of timings; none thrown away after counting"
    machine = Machine()
    run(machine, plan(CELLS, rounds=1))
    kept = [bool(t.rows_path) for t in machine.asked]
    assert kept == [False] + [True] * 3, "the first after idle is thrown away"


def test_full_passes_are_counted_on_the_null_device_of_cells_whose_collector_runs_by_itself():
    machine = Machine()
    cells = [msgspec.structs.replace(cell, device="modelled") for cell in CELLS]
    under_way = run(machine, plan(cells, extra_modes=["long_run"]))
    counted = [trial.cell for trial in machine.asked if trial.mode == "long_run"]
    assert counted == [msgspec.structs.replace(cell, device="null") for cell in cells[:2]]
    found = Trials(under_way.plan, under_way.outcomes)
    for cell, on_null in zip(cells, [*counted, None], strict=True):
        told = found.counted_in("long_run", cell)
        assert (told.cell if told else None) == on_null


def test_messages_are_looked_at_once_for_all_collectors_where_any_cross():
    across = [msgspec.structs.replace(cell, worker="process") for cell in CELLS]
    cells = [*CELLS, *across]
    assert counting_modes(cells, ("counts", "tracked", "wire")) == ["tracked", "wire"]
    machine = Machine()
    run(machine, plan(cells, rounds=1, extra_modes=["wire"]))
    (asked,) = (t for t in machine.asked if t.mode == "wire")
    assert (asked.cell.worker, asked.cell.gc) == ("process", "disabled")


def test_collections_are_counted_as_often_as_asked_and_compared():
    cells = [msgspec.structs.replace(cell, device="null", heap_objects=0) for cell in CELLS]
    machine, of = Machine(), plan(cells, rounds=1, extra_modes=["counts", "tracked"], repeats=3)
    outcomes = run(machine, of).outcomes
    assert Counter(t.mode for t in machine.asked) == {"counts": 5, "tracked": 1, "timing": 3}
    repeated = "Where counts were repeated they were equal in all 3 trials."
    assert repeated in summary(of, outcomes).notes
    key = next(key for key in outcomes if key.mode == "counts")
    outcomes[key] = msgspec.structs.replace(outcomes[key], processes=[process((9, 1, 0))])
    (note,) = [n for n in summary(of, outcomes).notes if "count" in n]
    assert "did not: 0/0/0 (2 times), 9/1/0 (1 times)." in note


def test_interrupted_anywhere_and_resumed_it_ends_as_if_never_interrupted(tmp_path):
    of = plan(CELLS, rounds=2, extra_modes=["counts", "tracked"])
    whole = run(Machine(), of)
    everything = len(whole.outcomes)
    assert everything == 3 + 1 + 6
    for number in range(1, everything + 1):
        machine, store = Machine(), RunStore(tmp_path, f"interrupted-{number}")
        store.create()
        machine.interrupt_at = number
        with pytest.raises(KeyboardInterrupt):
            run(machine, of, store)
        kept = store.load_trials()
        assert len(kept) == number - 1
        again = Machine()
        resumed = run(again, of, store, outcomes=dict(kept))
        missing = {key for key in whole.outcomes if key not in kept}
        warm_up = len(kept) >= 4
        assert len(again.asked) == warm_up + len(missing), "each once; to warm up, or counting"
        assert resumed.outcomes == whole.outcomes == store.load_trials()


def test_nothing_runs_where_all_is_there():
    of = plan(CELLS, rounds=2)
    whole, again = run(Machine(), of), Machine()
    run(again, of, outcomes=dict(whole.outcomes))
    assert again.asked == []


def test_a_cell_that_always_fails_is_given_up_and_the_others_are_complete():
    machine, of = Machine(), plan(CELLS, rounds=7)
    machine.broken = {CELLS[1]}
    result = summary(of, run(machine, of, batch=3).outcomes)
    asked = Counter(t.cell for t in machine.asked[1:])
    assert asked == {CELLS[0]: 7, CELLS[1]: 2, CELLS[2]: 7}
    assert [cell.samples for cell in result.cells] == [7, 7]
    assert [f.reason for f in result.failures] == ["it fell over"] * 2
    assert result.missing == ["No result of freeze."]
    assert [c.candidate for c in result.comparisons] == ["disabled"]


def test_a_cell_whose_trials_are_all_left_out_is_missing_for_their_reason():
    machine, of = Machine(), plan(CELLS[:2], rounds=7)
    machine.busy[CELLS[1]] = 1000
    result = summary(of, run(machine, of).outcomes)
    assert result.missing == ["No result of freeze: the machine was too busy."]
    assert result.not_compared == []


def test_where_every_cell_fails_it_ends():
    machine, of = Machine(), plan(CELLS, rounds=1000)
    machine.broken = set(CELLS)
    run(machine, of)
    assert len(machine.asked) == 1 + 2 * len(CELLS)


def test_failures_are_tried_again_when_resumed():
    machine, of = Machine(), plan(CELLS, rounds=2)
    machine.broken = {CELLS[1]}
    before = run(machine, of)
    again = Machine()
    after = run(again, of, outcomes=dict(before.outcomes))
    assert [t.cell for t in again.asked[1:] if t.cell == CELLS[1]] == [CELLS[1]] * 2
    assert all(isinstance(outcome, TrialResult) for outcome in after.outcomes.values())


@pytest.mark.parametrize(("spoiled", "tries", "invalid"), [(1, 2, 0), (2, 3, 0), (3, 3, 1)])
def test_a_trial_that_the_machine_spoils_is_tried_three_times(spoiled, tries, invalid):
    machine, of = Machine(), plan(CELLS[:1], rounds=1)
    first_turn = next(timing_round(of, 1))
    machine.busy[first_turn.cell] = spoiled + 1  # the one thrown away is not looked at
    under_way = run(machine, of)
    assert len(machine.asked) == 1 + tries
    assert under_way.repeated == tries - 1
    (outcome,) = under_way.outcomes.values()
    assert bool(outcome.invalid) == bool(invalid)
    result = summary(of, under_way.outcomes)
    assert [cell.samples for cell in result.cells] == ([] if invalid else [1])
    assert any("too busy" in note for note in result.notes) == bool(invalid)


class Noisy(Machine):
    """A machine on which every trial of a cell takes another time."""

    def _answer(self, trial: Trial) -> TrialResult | TrialFailure:
        wobble = (len(self.asked) * 7919 % 13 - 6) / 100
        return answer(trial, {"host_time_per_step": 1 + wobble})


def test_it_goes_on_until_the_interval_is_as_narrow_as_asked():
    of = plan(CELLS[:2], rounds=7)

    def numbers(half_width: float, budget: float = 1e9) -> tuple[int, float]:
        under_way = rounds(Noisy(), of)
        under_way.run(lambda outcomes: summary(of, outcomes), Precision(half_width, budget))
        (comparison,) = summary(of, under_way.outcomes).comparisons
        low, high = comparison.ci95
        return comparison.rounds, (high - low) / 2 / comparison.ratio

    fixed, width = numbers(0)
    assert fixed == 7
    further, narrower = numbers(width / 2)
    assert further > 7
    assert narrower <= width / 2
    assert numbers(width * 1.01)[0] == 7
    assert numbers(1e-6, budget=0)[0] == 7, "no time left after the rounds"


def test_it_does_not_go_on_for_a_precision_that_no_cell_is_left_to_give():
    of = plan(CELLS[:2], rounds=7)
    machine = Noisy()
    under_way = rounds(machine, of)
    seen = summary(of, run(Noisy(), of).outcomes)

    def broken_from_now(outcomes):
        machine.__class__ = Machine
        machine.broken = set(CELLS)
        return seen

    under_way.run(broken_from_now, Precision(1e-9, 1e9))
    assert len(machine.asked) == 1 + 14 + 2


def test_a_full_disk_ends_the_run_and_says_so():
    class FullDisk(MemoryStore):
        def save_trial(self, key, outcome) -> None:
            if len(self.trials) == 3:
                raise StoreError("results cannot be written to here: No space left on device")
            super().save_trial(key, outcome)

    machine, store = Machine(), FullDisk()
    with pytest.raises(StoreError, match="No space left"):
        run(machine, plan(CELLS), store)
    assert len(store.trials) == 3
    assert len(machine.asked) == 1 + 4


def test_what_was_interrupted_while_counting_has_a_summary_without_cells():
    plain = [msgspec.structs.replace(cell, heap_objects=0) for cell in CELLS]
    of, machine, store = plan(plain, extra_modes=["tracked"]), Machine(), MemoryStore()
    machine.interrupt_at = 2
    with pytest.raises(KeyboardInterrupt):
        run(machine, of, store)
    assert [outcome.mode for outcome in store.trials.values()] == ["tracked"]
    result = summary(of, store.trials)
    assert (result.cells, result.comparisons) == ([], [])


def test_a_trial_that_fills_its_device_is_prepared_alone():
    on_gpu = msgspec.structs.replace(CELL, device="cuda")
    vllm_on_gpu = msgspec.structs.replace(on_gpu, engine="vllm")
    executor = LocalExecutor(TRIAL_SECONDS)
    assert executor.batch_size(CELLS) == min(4, cores_usable())
    assert executor.batch_size([*CELLS, on_gpu]) == executor.batch_size([vllm_on_gpu]) == 1
    assert executor.notes == []
