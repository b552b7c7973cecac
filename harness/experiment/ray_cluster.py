"""A Ray cluster as this command has it: the connection, and which of its nodes measure."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from engines import tied_process
from harness.experiment.cluster_error import ClusterError
from harness.experiment.on_node import Identity, identity
from harness.experiment.same_origin import machine_differences
from harness.machine.describe import Machine, cores_usable
from harness.machine.interrupts import INTERRUPTS, held_interrupts
from harness.machine.scratch import scratch_folder

LOCAL = "local"
_OBJECT_STORE_BYTES = 80 << 20
"""Of a cluster of our own: schedules and rows pass through it, megabytes each."""
_ANSWER_SECONDS = 60.0
_CONNECT_SECONDS = 5.0
_GONE_SECONDS = 20.0
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # it reports nothing to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a task without GPUs hides none from others
}
"""For Ray, unless the user has set it."""


class Node(NamedTuple):
    """A node as Ray knows it; ``name`` is the one it was started with, or made of its id."""

    id: str
    name: str
    address: str
    cpus: float
    gpus: float


@dataclass(slots=True)
class Cluster:
    """Connected. ``nodes`` measure; ``left_out`` says of each other node why it does not.

    ``control``: HOST:PORT of the store that Ray has of all nodes.
    """

    address: str
    control: str
    without: Collection[str] = ()
    nodes: dict[str, Node] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    machine: Machine | None = None
    is_gone: bool = False
    _known: set[str] = field(default_factory=set)
    _silent_since: float = 0.0

    def admit(self) -> None:
        """Ask each node that is new who it is, and forget those that are gone.

        All must have this machine's code, interpreter and packages; of the machines the class
        that most nodes have at the first call measures. Raises ClusterError where the cluster is
        gone.
        """
        if not self.answers():
            return
        alive = {node.id: node for node in _alive()}
        self.nodes = {id: node for id, node in self.nodes.items() if id in alive}
        new = [node for id, node in alive.items() if id not in self._known]
        if not new:
            return
        self._known |= {node.id for node in new}
        fit = [node for node in new if self._is_wanted(node)]
        mine, found = identity(), dict(_identified(fit))
        equal: dict[str, Identity] = {}
        for node in fit:
            told = found[node.id]
            if isinstance(told, str):
                self.left_out[node.name] = told
            elif differing := mine.differences(told):
                self.left_out[node.name] = f"it differs from here in {'; '.join(differing)}"
            else:
                equal[node.id] = told
        if self.machine is None and equal:
            self.machine = _most_common(each.machine for each in equal.values())
        for node in fit:
            if node.id in equal:
                self._take(node, equal[node.id])

    def answers(self) -> bool:
        """Whether its control store does; ClusterError where it has not for too long.

        Ray itself would wait a minute, and then end this process.
        """
        if _can_connect(self.control):
            self._silent_since = 0.0
            return True
        self._silent_since = self._silent_since or time.monotonic()
        if time.monotonic() > self._silent_since + _GONE_SECONDS:
            self.is_gone = True
            raise ClusterError(
                f"--cluster {self.address}: it has not answered for {_GONE_SECONDS:g} s; what is "
                "finished is kept, and --resume goes on once it is back"
            )
        return False

    def _is_wanted(self, node: Node) -> bool:
        if node.name in self.without:
            self.left_out[node.name] = "--leave-out names it"
        elif node.cpus < 1:
            self.left_out[node.name] = "it offers Ray no CPU"
        return node.name not in self.left_out

    def _take(self, node: Node, of: Identity) -> None:
        assert self.machine is not None
        if of.is_like(self.machine):
            self.nodes[node.id] = node
        else:
            differing = next(machine_differences(self.machine, of.machine))
            self.left_out[node.name] = f"it is of another class than most nodes, {differing}"

    def drop(self, node: Node, why: str) -> None:
        """Measure on a node no more."""
        self.nodes.pop(node.id, None)
        self.left_out[node.name] = why


@contextmanager
def connected(address: str, without: Collection[str] = ()) -> Iterator[Cluster]:
    """A cluster at an address that Ray knows, or one on this machine alone for `LOCAL`.

    Raises ClusterError where there is none, it is of another Ray or Python, or no node can
    measure, and ModuleNotFoundError without Ray.
    """
    if find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with ExitStack() as stack:
        known = stack.enter_context(_of_our_own()) if address == LOCAL else _reachable(address)
        import ray  # only now: it reads its environment once

        _quieten()
        handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
        options: dict[str, Any] = {
            "address": known,
            "log_to_driver": False,
            "logging_level": "CRITICAL",
        }
        try:
            ray.init(**options)
        except ConnectionError as error:
            raise ClusterError(
                f"--cluster {address}: no Ray cluster can be reached from here; "
                "`ray start` makes this machine a node of one, and --cluster local needs none"
            ) from error
        except (RuntimeError, ValueError, OSError) as error:
            raise ClusterError(f"--cluster {address}: {_why(error)}") from error
        finally:
            for number, handler in handlers.items():  # Ray would end the program at SIGTERM
                signal.signal(number, handler)
        cluster = Cluster(address, ray.get_runtime_context().gcs_address, without)
        stack.callback(_disconnect, cluster)
        cluster.admit()
        if not cluster.nodes:
            raise ClusterError(f"--cluster {address}: no node can measure: {_told(cluster)}")
        yield cluster


def _disconnect(cluster: Cluster) -> None:
    """Part from it; not with a word where it is gone, for Ray would end this process over that."""
    import ray

    if cluster.is_gone:
        atexit.unregister(ray.shutdown)
    else:
        ray.shutdown()


@contextmanager
def _of_our_own() -> Iterator[str]:
    """The address of a cluster of this machine alone, which ends with this process.

    Ray would start one itself, but where its driver is killed some of it stays for minutes. Nobody
    else can use it: it wants a token that is made for it.
    """
    with scratch_folder(Path("/tmp")) as folder, ExitStack() as stack:
        # In /tmp, whatever TMPDIR says: a socket's path may have 107 characters.
        stack.enter_context(_token(folder / "token"))
        options = {
            "--temp-dir": folder,
            "--node-name": LOCAL,
            "--port": 0,
            "--num-cpus": cores_usable(),
            "--object-store-memory": _OBJECT_STORE_BYTES,
            "--include-dashboard": "false",
        }
        flags = [str(word) for pair in options.items() for word in pair]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        with held_interrupts():
            process = tied_process.start(
                [*command, *flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            yield _address_in(folder / "ray_current_cluster", process)
        finally:
            with held_interrupts():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def _token(path: Path) -> Iterator[None]:
    """What Ray asks of whoever connects, in a file of a folder that only this user can read."""
    path.write_text(token_hex(32))
    wanted = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _address_in(file: Path, process: "subprocess.Popen[bytes]") -> str:
    """What a cluster that starts writes there. Raises ClusterError where it does not."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if file.exists() and (address := file.read_text().strip()) and _can_connect(address):
            return address
        time.sleep(0.1)
    raise ClusterError(
        f"--cluster {LOCAL}: Ray has not started within {_ANSWER_SECONDS:g} s; `ray start --head` "
        "says why"
    )


def _quieten() -> None:
    """Keep Ray's own words about nodes and workers that die off standard output, where it prints
    them whatever it is told: a result may be there. They are in its log, and ours come as errors.
    """
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _told(cluster: Cluster) -> str:
    """Why nodes are left out, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in cluster.left_out.items():
        by_reason.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())


def _reachable(address: str) -> str:
    """The address, if anything answers there. Ray itself would try for a minute and more."""
    if "://" in address:
        raise ClusterError(
            f"--cluster {address}: Ray Client keeps no order of results; run gcbench on a node of "
            "the cluster, with --cluster auto"
        )
    if address == "auto":
        return address
    if not _can_connect(address):
        raise ClusterError(
            f"--cluster {address}: no Ray cluster answers there; `ray start --head` prints its "
            "address as HOST:PORT, and --cluster local needs none"
        )
    return address


def _can_connect(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS):
            return True
    except (OSError, ValueError, OverflowError):
        return False


def _why(error: Exception) -> str:
    """Ray's first sentence, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Version mismatch"):
        return f"{' '.join(lines)[:300]}; start both with one Ray and one Python"
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _alive() -> list[Node]:
    import ray

    return [
        Node(
            id=each["NodeID"],
            name=_name(each),
            address=each["NodeManagerAddress"],
            cpus=each["Resources"].get("CPU", 0),
            gpus=each["Resources"].get("GPU", 0),
        )
        for each in ray.nodes()  # type: ignore[no-untyped-call]
        if each["Alive"]
    ]


def _name(node: dict[str, Any]) -> str:
    """Of the node, never an address: results name it."""
    given = str(node.get("NodeName") or "")
    return given if given and given != node["NodeManagerAddress"] else f"node-{node['NodeID'][:6]}"


def _most_common(machines: Iterator[Machine]) -> Machine:
    classes: list[Machine] = []
    count: Counter[int] = Counter()
    for machine in machines:
        like = (n for n, each in enumerate(classes) if not list(machine_differences(each, machine)))
        number = next(like, len(classes))
        if number == len(classes):
            classes.append(machine)
        count[number] += 1
    return classes[count.most_common(1)[0][0]]


def _identified(nodes: Collection[Node]) -> Iterator[tuple[str, Identity | str]]:
    """Who each node is, or why it does not say."""
    import ray

    asked = {node.id: on_node(identify_there, node, num_cpus=0).remote() for node in nodes}
    ray.wait(list(asked.values()), num_returns=max(1, len(asked)), timeout=_ANSWER_SECONDS)
    for id, ref in asked.items():
        try:
            yield id, msgspec.json.decode(ray.get(ref, timeout=0), type=Identity)
        except ray.exceptions.GetTimeoutError:
            yield id, f"it has not answered within {_ANSWER_SECONDS:g} s"
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ModuleNotFoundError):
                yield id, f"its Python has no {error.cause.name}; install the same gcbench there"
            else:
                yield id, f"it cannot be asked: {_why(error.cause or error)}"
        except ray.exceptions.RayError as error:
            yield id, f"it cannot be asked: {_why(error)}"


def on_node(function: Callable[..., Any], node: Node, **options: Any) -> Any:
    """A function of `there` as a task that only this node may run, once."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    pinned = NodeAffinitySchedulingStrategy(node.id, soft=False)
    return ray.remote(function()).options(max_retries=0, scheduling_strategy=pinned, **options)


def identify_there() -> Callable[[], bytes]:
    """`identify`, as a function that carries itself: see `run_there`."""

    def identify() -> bytes:
        import sys

        from gcbench.code_root import code_root

        sys.path.insert(0, str(code_root()))
        from harness.experiment.on_node import identify

        return identify()

    return identify


def run_there() -> Callable[..., Iterator[Any]]:
    """`on_node.run`, as a function that Ray sends whole.

    A node's Ray imports by name only what is on its path, and of ours that is ``gcbench`` alone.
    """

    def run(asked: bytes, names: list[str], *files: bytes) -> Iterator[Any]:
        import sys

        from gcbench.code_root import code_root

        sys.path.insert(0, str(code_root()))
        from harness.experiment.on_node import run

        for heard in run(asked, dict(zip(names, files, strict=True))):
            yield tuple(heard)

    return run
