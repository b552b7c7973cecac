"""Shards deal blocks out whole; merged, they are the experiment that one machine would have run."""

import re
from itertools import product

import msgspec
import pytest
from small import CELL, Calls, answer, plan, schedule, summary

from harness.experiment.executor import Block
from harness.experiment.merge import merge_shards
from harness.experiment.plan import Plan
from harness.experiment.run import Runner
from harness.experiment.shard import Shard, parse_shard
from harness.experiment.store import RunStore
from harness.machine.describe import Machine
from harness.machine.other_work import OtherWork, Surroundings
from harness.result.result import keep_result

SCHEDULE = schedule([2, 2])
CELLS = [
    msgspec.structs.replace(CELL, gc=gc, model=model)
    for model in ("one", "two")
    for gc in ("default", "disabled")
]
ORIGIN = {
    "interpreter": "CPython 3.11.7 (built here), collector (700, 10, 10)",
    "code_sha256": "a" * 64,
    "dependencies": {"numpy": "2.0"},
    "machine": Machine(cpu_model="Made-up CPU"),
}


def seconds(trial) -> float:
    """What a trial of a mode, seed and cell takes, wherever it runs."""
    slow = 1.2 if trial.cell.gc == "disabled" else 1.0
    return slow * (1 + trial.seed % 997 / 1e5)


def run(output, name, shard=None, rounds=7, origin=ORIGIN, **changes):
    """The runner's store after it has run its part."""

    def measure(trials):
        for trial in trials:
            found = answer(trial, {"host_time_per_step": seconds(trial)})
            yield msgspec.structs.replace(found, **origin)

    runner = Runner(output, {SCHEDULE.name: SCHEDULE}, Calls(measure), shard=shard)
    fields = {"schedules": runner.schedule_hashes, "rounds": rounds, "extra_modes": ["counts"]}
    of = plan(CELLS, **(fields | {"name": name} | changes))
    runner.run(of)
    return output / name


def shards(output, count, **changes):
    return [run(output, f"part-{n}", Shard(n, count), **changes) for n in range(1, count + 1)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_block_is_in_one_shard_whole(tmp_path, count):
    seen = {}
    for folder in shards(tmp_path, count):
        for key, outcome in RunStore(tmp_path, folder.name).load_trials().items():
            assert key not in seen
            seen[key] = (key.round, outcome.cell.model, folder.name)
    whole = RunStore(tmp_path, run(tmp_path, "whole").name).load_trials()
    assert seen.keys() == whole.keys()
    blocks = {found[:2] for found in seen.values()}
    assert len(set(seen.values())) == len(blocks) == 8 * 2


def test_merged_shards_say_what_one_machine_says(tmp_path):
    folders = shards(tmp_path, 3)
    merged = merge_shards(folders, RunStore(tmp_path, "merged"))
    whole = run(tmp_path, "whole")
    assert merged.missing == 0
    alone = RunStore(tmp_path, "whole")
    told = summary(merged.plan, merged.outcomes)
    said = summary(merged.plan, alone.load_trials())
    assert [c.verdict for c in told.comparisons] == ["worse", "worse"]
    for one, other in zip(told.comparisons, said.comparisons, strict=True):
        assert (one.ratio, one.ci95, one.p_adjusted) == (other.ratio, other.ci95, other.p_adjusted)
    assert told.nodes == {"shard 1 of 3": 5, "shard 2 of 3": 5, "shard 3 of 3": 4}
    names = [
        sorted(path.name for path in (each / "trials").iterdir())
        for each in (whole, tmp_path / "merged")
    ]
    assert names[0] == names[1]
    again = RunStore(tmp_path, "merged")
    assert again.load_trials() == merged.outcomes
    assert not (tmp_path / "merged" / "incomplete.txt").exists()


def test_what_a_shard_has_not_brought_is_counted(tmp_path):
    one, two, _ = shards(tmp_path, 3)
    merged = merge_shards([one, two], RunStore(tmp_path, "merged"))
    assert merged.missing == 8 + 2
    assert (tmp_path / "merged" / "incomplete.txt").exists()


OTHERS = {
    "code": ({"code_sha256": "b" * 64}, "code: SHA-256 of the sources"),
    "interpreter": ({"interpreter": "CPython 3.12.1 (built here)"}, "interpreter (CPython 3.11.7"),
    "dependencies": ({"dependencies": {"numpy": "2.1"}}, "dependency numpy (2.0, now 2.1)"),
    "machine": ({"machine": Machine(cpu_model="Another CPU")}, "machine: cpu model (Made-up CPU"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_shards_of_another_origin_are_refused(tmp_path, what):
    changed, words = OTHERS[what]
    parts = [
        run(tmp_path, "one", Shard(1, 2)),
        run(tmp_path, "two", Shard(2, 2), origin=ORIGIN | changed),
    ]
    with pytest.raises(ValueError, match=re.escape(words)):
        merge_shards(parts, RunStore(tmp_path, "merged"))
    assert not (tmp_path / "merged").exists()


def test_shards_of_another_plan_or_workload_are_refused(tmp_path):
    one = run(tmp_path, "one", Shard(1, 2))
    two = run(tmp_path, "two", Shard(2, 2), rounds=8)
    with pytest.raises(ValueError, match="rounds of their plans differ"):
        merge_shards([one, two], RunStore(tmp_path, "merged"))
    of = msgspec.structs.replace(RunStore(tmp_path, "one").load_plan(type(plan(CELLS))), name="x")
    other = RunStore(tmp_path, "x")
    other.create()
    other.adopt_plan(msgspec.structs.replace(of, schedules={"small": "another"}))
    with pytest.raises(ValueError, match="workload of their plans differ"):
        merge_shards([one, tmp_path / "x"], RunStore(tmp_path, "merged"))


def test_shards_that_overlap_are_refused(tmp_path):
    parts = [run(tmp_path, "one", Shard(1, 2)), run(tmp_path, "two", Shard(1, 3))]
    with pytest.raises(ValueError, match="one and two cannot be merged: both hold"):
        merge_shards(parts, RunStore(tmp_path, "merged"))


def test_several_shards_at_once_are_those_shards(tmp_path):
    three = parse_shard("2-4/5")
    ones = [Shard(n, 5) for n in (2, 3, 4)]
    for round_number, group in product(range(12), range(3)):
        block = Block(round=round_number, group=group, turns=[], trials=[])
        assert three.takes(block) == any(one.takes(block) for one in ones)


def test_five_rounds_of_one_call_and_two_of_the_next_make_one_verdict(tmp_path):
    parts = [run(tmp_path, text[0], parse_shard(text)) for text in ("1-5/7", "6-7/7")]
    merged = merge_shards(parts, RunStore(tmp_path, "merged"))
    assert merged.missing == 0
    whole = RunStore(tmp_path, run(tmp_path, "whole").name).load_trials()
    told, said = (summary(merged.plan, each) for each in (merged.outcomes, whole))
    assert [c.verdict for c in told.comparisons] == ["worse", "worse"]
    assert [c.ci95 for c in told.comparisons] == [c.ci95 for c in said.comparisons]


@pytest.mark.parametrize(
    "text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/99999", "2-1/3", "1-4/3", "1-/3"]
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ValueError, match="must be I/N"):
        parse_shard(text)


@pytest.mark.parametrize("others", [[0.0, 1.5], [1.5, 0.0], [None, 1.5], [None, None]])
def test_a_merged_run_was_as_busy_as_its_busiest_shard(tmp_path, others):
    folders = shards(tmp_path, 2)
    for folder, cores in zip(folders, others, strict=True):
        if cores is not None:
            work = OtherWork(seconds=9, cores=2, others=cores, stolen=0)
            store = RunStore(tmp_path, folder.name)
            found = summary(store.load_plan(Plan), store.load_trials())
            now = Surroundings(before=work, during=work)
            keep_result(tmp_path, msgspec.structs.replace(found, surroundings=now))
    known = [each for each in others if each is not None]
    found = merge_shards(folders, RunStore(tmp_path, "all")).surroundings
    assert (found and found.during.others) == (max(known) if known else None)
