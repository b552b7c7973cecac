"""Verdicts from several nodes: paired inside blocks, right whatever the nodes' speeds.

Blocks as the main job has measured them, on a simulated clock; see block_model.py.
"""

import os
import subprocess
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest
from block_model import (
    PAIR,
    SPEEDS,
    Nodes,
    a_cell_to_a_node,
    experiment,
    paired_with_another_block,
    share,
    simulated,
)
from examples import every
from golden_text import reported
from small import MemoryStore, answer, plan, summary

from harness.experiment.executor import Block
from harness.experiment.known_noise import keep_noise, known_noise
from harness.experiment.node_noise import NodeNoise, node_noise
from harness.experiment.noise_result import NoiseResult
from harness.experiment.plan import Turn
from harness.experiment.ray.carried_code import packed_code, unpack_there
from harness.experiment.ray.on_node import BEGUN, AskedBlock, Identity, identity, run_asked
from harness.experiment.rounds import Precision, Rounds
from harness.machine.describe import Machine
from harness.report.conclusion import in_short
from harness.statistics.agreement import disagreement
from harness.statistics.paired_ratio import ALPHA
from harness.trial.spec import Trial, TrialFailure

REPETITIONS = 200 // every()
BLOCKS = 14


@pytest.mark.slow
def test_equal_cells_on_unequal_nodes_are_called_different_at_most_twice_in_a_hundred():
    said = Counter(
        experiment(simulated(seed, BLOCKS, SPEEDS), BLOCKS, seed)[0].verdict
        for seed in range(REPETITIONS)
    )
    print(f"A/A on nodes x {SPEEDS}, {BLOCKS} blocks: {dict(said)}")
    assert said["better"] + said["worse"] <= 0.02 * REPETITIONS


@pytest.mark.slow
def test_three_percent_is_found_in_fourteen_blocks_and_not_without_pairing_them():
    paired, apart = Counter[str](), Counter[str]()
    rng = np.random.default_rng(0)
    for seed in range(REPETITIONS):
        nodes = simulated(seed, BLOCKS, SPEEDS, [0.03] * 3)
        comparison, outcomes = experiment(nodes, BLOCKS, seed)
        paired[comparison.verdict] += 1
        apart[paired_with_another_block(outcomes, rng)] += 1
    print(f"3 % on nodes x {SPEEDS}: paired {dict(paired)}, against any block {dict(apart)}")
    assert paired["worse"] >= 0.95 * REPETITIONS
    assert paired["better"] == 0
    assert apart["worse"] <= 0.2 * REPETITIONS


@pytest.mark.slow
def test_the_same_trials_give_wrong_verdicts_where_each_cell_has_a_node_of_its_own():
    said = Counter(
        a_cell_to_a_node(experiment(simulated(seed, BLOCKS, SPEEDS), BLOCKS, seed)[1])
        for seed in range(REPETITIONS)
    )
    print(f"A/A, a cell to a node: {dict(said)}")
    assert said["better"] + said["worse"] >= 0.9 * REPETITIONS


@pytest.mark.parametrize("count", [2, 4])
def test_as_many_equal_nodes_as_you_like_say_what_one_says(count):
    """The same noise by trial, so to the last digit; and in a fraction of the time."""
    for seed in range(5):
        one, several = (simulated(seed, BLOCKS, [1.0] * n, [0.03] * n) for n in (1, count))
        alone, outcomes = experiment(one, BLOCKS, seed)
        spread, others = experiment(several, BLOCKS, seed)
        assert (alone.ratio, alone.ci95, alone.verdict) == (
            spread.ratio,
            spread.ci95,
            spread.verdict,
        )
        assert outcomes.keys() == others.keys()
        assert several.wall_seconds < 1.2 * one.wall_seconds * np.ceil(BLOCKS / count) / BLOCKS


def test_nodes_that_disagree_are_found_and_named_and_the_verdict_is_withheld():
    found = []
    for seed in range(REPETITIONS // 2):
        nodes = simulated(seed, BLOCKS, SPEEDS, [0.06, 0.06, -0.06])
        comparison, _ = experiment(nodes, BLOCKS, seed)
        assert [each.node for each in comparison.by_node] == ["node-0", "node-1", "node-2"]
        assert sum(each.rounds for each in comparison.by_node) == BLOCKS
        disagree = comparison.nodes_p is not None and comparison.nodes_p < ALPHA
        found.append(disagree)
        if disagree:
            assert comparison.verdict == "inconclusive"
    assert share(found) >= 0.9


def test_nodes_that_agree_are_said_to_disagree_at_most_twice_in_a_hundred():
    p_values = [
        experiment(simulated(seed, BLOCKS, SPEEDS, [0.03] * 3), BLOCKS, seed)[0].nodes_p
        for seed in range(REPETITIONS)
    ]
    assert share(p is not None and p < ALPHA for p in p_values) <= 0.02


def test_a_change_that_all_nodes_see_keeps_its_verdict_however_much_they_differ():
    comparison, _ = experiment(simulated(0, BLOCKS, SPEEDS, [0.06, 0.2, 0.4]), BLOCKS, 0)
    assert comparison.nodes_p < ALPHA
    assert comparison.verdict == "worse"


def test_the_report_says_by_node_where_they_disagree():
    of = plan(PAIR, rounds=BLOCKS)
    under_way = Rounds(of, MemoryStore(), simulated(1, BLOCKS, SPEEDS, [0.1, 0.1, -0.1]), print)
    under_way.on_trial = lambda turn, outcome: None
    under_way.run(lambda outcomes: summary(of, outcomes), Precision(0, 0))
    result = summary(of, under_way.outcomes)
    (sentence,) = [each for each in in_short(result) if "disagree" in each]
    assert all(f"% on node-{n}" in sentence for n in range(3))
    assert sum(result.nodes.values()) == BLOCKS


def test_trials_of_two_runs_of_a_block_are_no_pair():
    nodes = simulated(0, BLOCKS, [1.0])
    _, outcomes = experiment(nodes, BLOCKS, 0)
    of = plan(PAIR, rounds=BLOCKS)
    key = next(key for key in outcomes if key.round == 3)
    outcomes[key] = msgspec.structs.replace(outcomes[key], block="repeated")
    (comparison,) = summary(of, outcomes).comparisons
    assert comparison.rounds == BLOCKS - 1


def test_a_block_that_was_cut_short_is_run_again_as_a_whole():
    of = plan(PAIR, rounds=4)

    def resumed(outcomes):
        seen = []
        nodes: Nodes = simulated(9, 4, [1.0])
        under_way = Rounds(
            of,
            MemoryStore(),
            nodes,
            lambda turn, outcome: seen.append(turn.round),
            outcomes=outcomes,
        )
        under_way.run(lambda outcomes: summary(of, outcomes), Precision(0, 0))
        return seen

    _, whole = experiment(simulated(0, 4, [1.0]), 4, 0)
    assert resumed(dict(whole)) == []
    key = next(key for key in whole if key.round == 3)
    assert resumed({k: each for k, each in whole.items() if k != key}) == [3, 3]
    mixed = whole | {key: msgspec.structs.replace(whole[key], block="another")}
    assert resumed(mixed) == [3, 3]
    fields = {"cell": whole[key].cell, "mode": "timing", "seed": 0}
    failed = TrialFailure(**fields, kind="killed", reason="its node was lost")
    assert resumed(whole | {key: failed}) == [3, 3]


def test_a_node_too_noisy_to_find_three_percent_is_named_and_so_is_one_that_nobody_knows():
    rng = np.random.default_rng(5)
    trial = Trial(cell=PAIR[0], schedule_path="", schedule_sha256="")

    def result(node, spread):
        metrics = {"host_time_per_step": float(np.exp(rng.normal(0, spread)))}
        return msgspec.structs.replace(answer(trial, metrics), node=node)

    pairs = [
        (result(node, spread), result(node, spread))
        for node, spread, blocks in (("calm", 0.01, 14), ("loud", 0.05, 14), ("new", 0.01, 2))
        for _ in range(blocks)
    ]
    found = {each.node: each for each in node_noise("host_time_per_step", pairs)}
    assert {node: each.is_fit for node, each in found.items()} == {
        "calm": True,
        "loud": False,
        "new": False,
    }
    result = NoiseResult(
        name="noise",
        metric="host_time_per_step",
        cells=2,
        rounds=30,
        trial_cv=0.03,
        sd_log_ratio=0.03,
        mde={14: 0.02},
        nodes=list(found.values()),
    )
    said = reported(result)
    assert "From now on --cluster leaves out loud." in said
    assert "too few blocks" in said


def test_a_node_is_admitted_by_its_own_noise_as_long_as_it_is_the_same_node(tmp_path):
    of = Identity(code="a", interpreter="3.11", packages={}, machine=Machine(cpu_model="x"))

    def noise(node, mde):
        return NodeNoise(node=node, rounds=14, trial_cv=mde, sd_log_ratio=mde, mde=mde)

    assert known_noise(tmp_path).find("calm", of) is None
    keep_noise(tmp_path, "host_time_per_step", of, [noise("calm", 0.01), noise("loud", 0.08)])
    keep_noise(tmp_path, "host_time_per_step", of, [NodeNoise(node="new", rounds=2)])
    known = known_noise(tmp_path)
    assert known.find("calm", of)
    assert known.find("new", of) is None
    assert known.objection("calm", of) == known.objection("new", of) == ""
    assert "14 rounds there detect 8.0 % of host_time_per_step" in known.objection("loud", of)
    for field, other in (
        ("code", "b"),
        ("interpreter", "3.12"),
        ("packages", {"numpy": "2"}),
        ("machine", Machine(cpu_model="y")),
    ):
        changed = msgspec.structs.replace(of, **{field: other})
        assert known.find("loud", changed) is None
        assert known.objection("loud", changed) == ""
    keep_noise(tmp_path, "host_time_per_step", of, [noise("loud", 0.02)])
    assert known_noise(tmp_path).objection("loud", of) == "", "it was measured again"
    assert known_noise(tmp_path).find("calm", of), "the others are as they were"
    (tmp_path / "node-noise.json").write_text("{")
    assert not known_noise(tmp_path).nodes
    assert (tmp_path / "node-noise.json.unreadable").exists()


@pytest.mark.slow
def test_code_is_carried_whole_and_kept_by_its_hash(tmp_path, monkeypatch):
    """A fresh interpreter finds it there, and its identity is ours."""
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/inherited")
    code = packed_code()
    assert code == packed_code()
    path = unpack_there()(code.name, code.content)
    kept = tmp_path / "code" / code.name[:16]
    assert path == f"{kept}{os.pathsep}/inherited"
    before = kept.stat().st_mtime_ns
    assert unpack_there()(code.name, code.content) == path
    assert kept.stat().st_mtime_ns == before
    assert [each.name for each in kept.parent.iterdir()] == [kept.name], "nothing half made"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from gcbench.code_root import code_root\n"
            "sys.path.insert(0, str(code_root()))\n"
            "from harness.experiment.ray.on_node import identify; print(identify().decode())",
        ],
        env=os.environ | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    carried = msgspec.json.decode(done.stdout, type=Identity)
    assert identity().differences(carried) == []


def test_a_node_says_which_release_it_cannot_make():
    cell = msgspec.structs.replace(PAIR[0], engine="vllm-hostpath", release="0.0.1")
    trial = Trial(cell=cell, schedule_path="", schedule_sha256="", mode="counts")
    block = Block(round=0, group=0, turns=[Turn(0, 0, cell, "counts", 0)], trials=[trial])
    asked = AskedBlock(block=block, timeout_seconds=60.0)
    begun, ended = run_asked(msgspec.json.encode(asked), {})
    assert begun.nth == BEGUN
    assert "0.0.1 cannot be made on a node: " in begun.outcome.decode()
    assert not ended.is_result


def test_disagreement_needs_two_nodes_with_two_blocks():
    assert disagreement([[0.1, 0.2]]) is None
    assert disagreement([[0.1, 0.2], [0.3]]) is None
    assert disagreement([[0.0, 0.0], [0.0, 0.0]]) == 1.0
    assert disagreement([[0.0, 0.01, 0.02, 0.03] * 2, [0.1, 0.11, 0.12, 0.13] * 2]) < ALPHA
