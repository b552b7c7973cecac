"""Blocks on real Ray nodes of this machine: counts to the digit, verdicts, and what dies.

Most trials are made up (ray_nodes.py), so that twenty deaths fit in a minute; two tests run real
ones. A node's Ray takes seconds to start, so all tests share a cluster and add nodes to it; the
last one ends it.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from examples import attempts, every
from processes import HANG_SECONDS, is_alive
from ray_nodes import CELLS, GONE_SECONDS, TIMEOUT_SECONDS, made_up, run
from small import summary

from harness.cli.exit_codes import ExitCode
from harness.experiment.known_noise import KnownNoise, keep_noise, known_noise
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.node_noise import NodeNoise
from harness.experiment.plan import EXACT_ROUND
from harness.experiment.ray.cluster import Cluster, WantedNodes
from harness.experiment.ray.connection import connected
from harness.experiment.ray.error import ClusterError
from harness.experiment.ray.executor import RayExecutor
from harness.experiment.store import RunStore
from harness.statistics.paired_ratio import ALPHA
from harness.trial.spec import TrialFailure

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

HERE = Path(__file__).parent
TINY = [
    "--device",
    "null",
    "--num-requests",
    "8",
    "--output-lens",
    "12",
    "--batch-size",
    "8",
    "--representation",
    "list_of_lists,flat_arrays",
    "--delivery",
    "per_request",
    "--gc",
    "default",
    "--heap-objects",
    "0",
]
OBJECT_STORE_BYTES = 80 << 20
SOON_DEAD = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}
"""Ray counts a node that does not answer as dead: after a minute, if it is not told otherwise."""
ROUNDS = 8
MODES = ["counts", "probed", "tracked", "memory", "leaks", "opcodes"]


class Nodes:
    """A cluster on this machine, with nodes of one CPU each beside a head that has none."""

    def __init__(self, folder: Path) -> None:
        from ray._common.utils import get_default_ray_temp_dir
        from ray.cluster_utils import Cluster

        # Where no Ray has run before, `Cluster` fails to write its address there.
        Path(get_default_ray_temp_dir()).mkdir(exist_ok=True)
        self.folder = folder
        head = {
            "num_cpus": 0,
            "include_dashboard": False,
            "node_name": "head",
            "object_store_memory": OBJECT_STORE_BYTES,
            "temp_dir": str(folder),
            "_system_config": SOON_DEAD,
        }
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes: list = []
        self._made = 0

    @property
    def address(self) -> str:
        return self._cluster.address

    @property
    def names(self) -> str:
        """Of all that there ever were, as --leave-out takes them."""
        return ",".join(f"node-{number + 1}" for number in range(self._made))

    def have(self, count: int, attempts: int = 5) -> None:
        """Add nodes, or end the last, until there are so many."""
        while len(self._nodes) > count:
            self._cluster.remove_node(self._nodes.pop(), allow_graceful=True)
        while len(self._nodes) < count:
            self._made += 1
            self._nodes.append(
                self._cluster.add_node(
                    num_cpus=1,
                    node_name=f"node-{self._made}",
                    object_store_memory=OBJECT_STORE_BYTES,
                )
            )
        try:
            self._cluster.wait_for_nodes(60)
        except TimeoutError:  # one was so slow that it counts as dead, and Ray waits for it
            if not attempts:
                raise
            while self._nodes:
                self.kill()
            self.have(count, attempts - 1)

    def kill(self, raylet: int = 0) -> None:
        """Kill -9 the one whose raylet has this number, or any."""
        numbers = [each.all_processes["raylet"][0].process.pid for each in self._nodes]
        node = self._nodes.pop(numbers.index(raylet) if raylet else 0)
        self._cluster.remove_node(node, allow_graceful=False)

    def end(self) -> None:
        self._cluster.shutdown()


def processes_of(folder: Path) -> list[psutil.Process]:
    """All of a cluster, and workers, whose title names no folder."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if any(str(folder) in part for part in each.info["cmdline"] or ())
    ]


def workers() -> list[psutil.Process]:
    """Those that run a block, of whichever cluster."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if (each.info["cmdline"] or [""])[0].startswith("ray::run")
    ]


def soon(condition, seconds=HANG_SECONDS) -> bool:
    """Whether it comes true; a node's processes end on their own."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def nodes():
    """A cluster of which nothing is left afterwards."""
    pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as name:
        made = Nodes(Path(name))
        yield made
        made.end()
        assert soon(lambda: not processes_of(Path(name)) and not workers())


def admitted(cluster: Cluster, wanted: WantedNodes) -> Cluster:
    """The same, as a command that wants other nodes would have it."""
    found = Cluster(cluster.address, cluster.control, wanted)
    found.admit()
    return found


def gcbench(*words, **environment):
    command = [sys.executable, "-m", "harness", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    return done.returncode, done.stdout, done.stderr


def whole(folder: Path, of) -> dict:
    """All outcomes of an experiment, which has each trial once and each block of one run."""
    outcomes = RunStore(folder, of.name).load_trials()
    assert len(outcomes) == of.rounds * len(CELLS) + len(CELLS)
    assert len(list((folder / of.name / "trials").iterdir())) == len(outcomes)
    runs: dict[int, set] = {}
    for key, outcome in outcomes.items():
        if key.round != EXACT_ROUND:
            runs.setdefault(key.round, set()).add((outcome.node, outcome.block))
    assert all(len(each) == 1 for each in runs.values())
    assert len(set.union(*runs.values())) == of.rounds, "no run of a block counts for two"
    assert [each.rounds for each in summary(of, outcomes).comparisons] == [of.rounds]
    return outcomes


def exact(of, outcomes) -> dict:
    """Every exact figure of every cell."""
    return {
        (cell.id, name): metric.samples
        for cell in summary(of, outcomes).cells
        for name, metric in cell.metrics.items()
        if metric.kind == "exact"
    }


def test_counts_are_those_of_one_machine_to_the_digit(nodes, tmp_path):
    """One, two and four nodes, real trials; and what four have timed comes home, rows too."""

    def counted(executor, name, rounds=0):
        of, ran = run(executor, tmp_path, name, rounds, extra_modes=MODES)
        assert not [each for each in ran.outcomes.values() if isinstance(each, TrialFailure)]
        return exact(of, ran.outcomes), ran.outcomes

    alone, _ = counted(LocalExecutor(TIMEOUT_SECONDS), "local")
    assert len(alone) > 20
    nodes.have(1)
    with connected(nodes.address) as cluster:
        for count in sorted((4, 2, 1)[:: every()]):
            nodes.have(count)
            cluster.admit()
            assert len(cluster.nodes) == count
            name = f"nodes-{count}"
            executor = RayExecutor(cluster, TIMEOUT_SECONDS)
            found, outcomes = counted(executor, name, rounds=count // 4)
            assert found == alone
            assert all(each.node.startswith("node-") for each in outcomes.values())
    rows = tmp_path / name / "rows"
    assert len(list(rows.glob("*-steps.parquet"))) == len(CELLS)
    assert not list(rows.glob("*.npz"))
    assert soon(lambda: not workers())


@pytest.mark.landing
def test_equal_and_unequal_cells_on_nodes_of_planted_speeds(nodes, tmp_path):
    """Three points: A/A, 3 % and 6 % on nodes x 1.0, 1.3 and 0.8; noise of 1 % a trial."""
    nodes.have(3)
    with connected(nodes.address) as cluster:
        speeds = dict(zip(cluster.nodes, (1.0, 1.3, 0.8), strict=True))
        for effect, verdict in ((0.0, "same"), (0.03, "worse"), (-0.06, "better")):
            executor = RayExecutor(cluster, TIMEOUT_SECONDS, program=made_up(0.02, effect, speeds))
            of, ran = run(executor, tmp_path, f"effect{effect}", 21)
            (comparison,) = summary(of, whole(tmp_path, of)).comparisons
            # Which node takes which block is chance, and 1.5 % of such chances look like nodes that
            # disagree: then equal cells get no verdict.
            by_chance = comparison.verdict == "inconclusive" and (comparison.nodes_p or 1) < ALPHA
            assert comparison.verdict == verdict or (not effect and by_chance), comparison
            assert len(comparison.by_node) == 3
            assert not ran.is_interrupted


class Watched:
    """An executor; ``hears`` is called with how many trials have ended, before each is kept."""

    is_spread, machines = True, 2

    def __init__(self, executor: RayExecutor, hears) -> None:
        self._executor, self._hears, self._heard = executor, hears, 0
        self.run, self.batch_size, self.notes = executor.run, executor.batch_size, executor.notes

    def run_blocks(self, blocks):
        for ended in self._executor.run_blocks(blocks):
            self._heard += 1
            self._hears(self._heard)
            yield ended


@pytest.mark.parametrize("victim", ["worker", "node"])
def test_what_dies_with_its_block_is_repeated_and_nothing_counts_twice(nodes, tmp_path, victim):
    rng, lost = random.Random(victim), []
    for attempt in range(attempts(8)):
        nodes.have(2)
        at, killed = rng.randrange(3, 2 * ROUNDS), []

        def kill(heard, at=at, killed=killed):
            if heard >= at and not killed and (running := workers()):
                killed.append(rng.choice(running))
                nodes.kill() if victim == "node" else killed[0].kill()

        with connected(nodes.address) as cluster:
            executor = RayExecutor(cluster, TIMEOUT_SECONDS, program=made_up(0.1))
            of, _ = run(Watched(executor, kill), tmp_path, f"{victim}-{attempt}", ROUNDS)
        whole(tmp_path, of)
        assert killed
        lost += [note for note in executor.notes if "was lost on" in note]
    print(f"{victim}: {attempts(8)} killed, {len(lost)} blocks lost with them")
    assert soon(lambda: not workers())


def driver_of(nodes, folder: Path, name: str) -> subprocess.Popen:
    """An experiment under way in a process of its own."""
    path = os.pathsep.join((os.environ["PYTHONPATH"], str(HERE.parent)))
    words = [nodes.address, str(folder), name, str(ROUNDS), "0.1"]
    return subprocess.Popen(
        [sys.executable, str(HERE / "ray_nodes.py"), *words],
        env=os.environ | {"PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_driver_that_is_killed_leaves_what_it_has_and_another_goes_on(nodes, tmp_path):
    nodes.have(2)
    rng = random.Random(3)
    for attempt in range(attempts(4)):
        name, trials = f"driver-{attempt}", tmp_path / f"driver-{attempt}" / "trials"
        at = rng.randrange(2, 2 * ROUNDS)
        with driver_of(nodes, tmp_path, name) as driver:
            assert soon(lambda trials=trials, at=at: len(list(trials.glob("*.json"))) >= at)
            driver.send_signal(signal.SIGKILL)
        assert soon(lambda: not workers()), "its tasks end with it"
        kept = RunStore(tmp_path, name).load_trials()
        assert len(kept) >= at - 1
        with connected(nodes.address) as cluster:
            executor = RayExecutor(cluster, TIMEOUT_SECONDS, program=made_up())
            of, _ = run(executor, tmp_path, name, ROUNDS)
            after = whole(tmp_path, of)
        finished = {
            key.round
            for key in kept
            if all(other in kept for other in after if other.round == key.round)
        }
        same = [key for key in kept if key.round in finished]
        assert all(after[key] == kept[key] for key in same), "what was whole is not run again"


@pytest.mark.parametrize("hung", ["raylet", "node"])
def test_a_node_that_hangs_is_left_out_and_its_block_repeated(nodes, tmp_path, hung):
    """A stopped raylet whose worker goes on, and one that is stopped with all its processes."""
    nodes.have(2)
    stopped = []

    def stop(heard):
        if heard > 3 and not stopped and (running := workers()):
            raylet = running[0].parent()
            stopped.extend([raylet, *raylet.children()][: 1 if hung == "raylet" else None])
            for process in stopped:
                process.suspend()

    try:
        with connected(nodes.address) as cluster:
            executor = RayExecutor(cluster, 1.0, program=made_up(0.1))
            of, _ = run(Watched(executor, stop), tmp_path, f"hung-{hung}", ROUNDS)
            assert len(cluster.nodes) == 1
    finally:
        for process in stopped[1:]:
            process.kill()
        nodes.kill(stopped[0].pid)
    whole(tmp_path, of)
    assert [note for note in executor.notes if "was lost on" in note]
    assert soon(lambda: not workers())


def test_what_cannot_be_is_one_sentence_and_what_is_finished_is_kept(nodes, tmp_path):
    nodes.have(1)
    words = ["compare", *TINY, "--output", str(tmp_path)]
    status, _, err = gcbench(*words, "--cluster", nodes.address, "--leave-out", nodes.names)
    assert (status, err.count("\n")) == (ExitCode.NOT_MEASURED, 1)
    assert "no node can measure: " in err
    assert "head: it offers Ray no CPU" in err
    status, _, err = gcbench(*words, "--cluster", "127.0.0.1:1")
    assert (status, err.count("\n")) == (ExitCode.NOT_MEASURED, 1)
    assert "no Ray cluster answers there" in err


def test_another_ray_is_refused_and_another_code_is_sent_to_the_nodes(nodes, tmp_path):
    """The driver has a Ray that says it is another; then it runs from a changed copy."""
    nodes.have(1)
    (tmp_path / "elsewhere").mkdir()
    code = "import sys; from harness.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [
        "compare",
        *TINY,
        "--cluster",
        nodes.address,
        "--rounds",
        "1",
        "--no-counting",
        "--json",
        "-",
        "--quiet",
    ]

    def driven(before: str, path: Path) -> subprocess.CompletedProcess:
        environment = {"PYTHONPATH": str(path), "GCBENCH_CACHE": str(tmp_path / "cache")}
        return subprocess.run(
            [sys.executable, "-c", before + code, *words],
            cwd=tmp_path / "elsewhere",
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    root = HERE.parents[2]
    done = driven("import ray; ray.__version__ = '2.0.0'; ", root)
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.NOT_MEASURED, 1)
    assert "start both with one Ray and one Python" in done.stderr
    for package in ("engines", "gcbench", "harness", "workloads"):
        shutil.copytree(
            root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    changed = tmp_path / "harness" / "trial" / "origin.py"
    changed.write_text(changed.read_text().replace('"code_commit": commit', '"code_commit": "new"'))
    done = driven("", tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (note,) = [note for note in result["notes"] if "was sent this one" in note]
    store = RunStore(tmp_path / "elsewhere" / "results" / "runs", result["name"])
    found = store.load_trials().values()
    assert [each.code_commit for each in found] == ["new"] * len(CELLS)
    assert all(note.startswith(f"Node {each.node} had another gcbench") for each in found)


def test_nodes_that_differ_are_left_out_and_a_class_can_be_chosen(nodes, tmp_path, monkeypatch):
    """One that says it has another NumPy, and one that may use fewer cores."""
    nodes.have(2)
    said = tmp_path / "numpy-0.1.dist-info"
    said.mkdir()
    (said / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ["PYTHONPATH"])))
        nodes.have(3)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        nodes.have(4)
    finally:
        os.sched_setaffinity(0, cores)
    other, few = nodes.names.split(",")[-2:]
    with connected(nodes.address) as cluster:
        assert "differs from here in numpy (0.1, here " in cluster.left_out[other]
        assert len(cluster.nodes) == 2 + (len(cores) == 1)
        if len(cores) > 1:
            assert f"cores usable ({len(cores)}, now 1); --like {few}" in cluster.left_out[few]
        chosen = admitted(cluster, WantedNodes(like=few))
        assert len(chosen.nodes) == (1 if len(cores) > 1 else 3)
        assert chosen.identity.machine.cores_usable == 1
        with pytest.raises(ClusterError, match="--like nobody: no node that can measure; there "):
            admitted(cluster, WantedNodes(like="nobody"))
    nodes.have(2)


def test_a_node_whose_noise_is_known_is_admitted_by_it(nodes, tmp_path):
    nodes.have(2)
    with connected(nodes.address, WantedNodes(noise=KnownNoise())) as cluster:
        of, (calm, loud) = cluster.identity, sorted(node.name for node in cluster.nodes.values())
        notes = RayExecutor(cluster, TIMEOUT_SECONDS).notes
        assert [note for note in notes if f"How noisy {calm}, {loud} may be is not known" in note]
        keep_noise(
            tmp_path,
            "host_time_per_step",
            of,
            [
                NodeNoise(node=name, rounds=14, trial_cv=mde, sd_log_ratio=mde, mde=mde)
                for name, mde in ((calm, 0.01), (loud, 0.09))
            ],
        )
        found = admitted(cluster, WantedNodes(noise=known_noise(tmp_path)))
        assert [node.name for node in found.nodes.values()] == [calm]
        assert "it is too noisy" in found.left_out[loud]
        notes = " ".join(RayExecutor(found, TIMEOUT_SECONDS).notes)
        assert "14 rounds there detect 9.0 %" in notes
        assert "How noisy" not in notes


def test_a_cluster_of_its_own_in_one_command_leaves_nothing(tmp_path):
    mark = ("OF_THE_TEST", str(tmp_path))

    def marked() -> list[psutil.Process]:
        """All that the command has started but for two agents, which write over it."""
        return [
            each
            for each in psutil.process_iter(["environ", "name"])
            if mark in (each.info["environ"] or {}).items()
        ]

    words = [
        "compare",
        *TINY,
        "--rounds",
        "1",
        "--no-counting",
        "--cluster",
        "local",
        "--json",
        "-",
        "--quiet",
        "--output",
        str(tmp_path),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        env=os.environ | dict([mark]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert soon(lambda: {"raylet", "gcs_server"} <= {each.info["name"] for each in marked()})
        out, err = command.communicate(timeout=600)
    assert command.returncode == 0, err
    assert json.loads(out)["nodes"] == {"local": 1}
    left = {each.info["name"] for each in marked() if is_alive(each)}
    assert left <= {"ray::IDLE", "python"}, "those end when they see that their node has"
    assert soon(lambda: not [each for each in marked() if is_alive(each)])
    assert not [each for each in workers() if is_alive(each)]


def test_a_cluster_that_goes_away_ends_the_run_in_a_sentence(nodes, tmp_path):
    """The last test of this file, for it ends the cluster that they share."""
    nodes.have(1)
    trials = tmp_path / "away" / "trials"
    with driver_of(nodes, tmp_path, "away") as driver:
        assert soon(lambda: len(list(trials.glob("*.json"))) >= 4)
        for process in processes_of(nodes.folder):
            process.kill()
        _, err = driver.communicate(timeout=600)
    assert driver.returncode == ExitCode.NOT_MEASURED
    assert f"it has not answered for {GONE_SECONDS:g} s; what is finished is kept" in err
    assert err.count("\n") == 1
    assert len(RunStore(tmp_path, "away").load_trials()) >= 4
    assert (tmp_path / "away" / "incomplete.txt").exists()
