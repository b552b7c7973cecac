"""A Ray cluster's nodes: which of them measure, and why the others do not."""

import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.experiment.cluster_error import ClusterError
from harness.experiment.on_node import Identity, identity
from harness.experiment.ray_address import can_connect
from harness.experiment.ray_tasks import Node, identified
from harness.experiment.same_origin import machine_differences
from harness.machine.describe import Machine


@dataclass(slots=True)
class Cluster:
    """Connected. ``nodes`` measure; ``left_out`` says of each other node why it does not.

    ``control``: HOST:PORT of the store that Ray has of all nodes. ``gone_seconds``: without an
    answer of that, after which the cluster is taken to be gone.
    """

    address: str
    control: str
    without: Collection[str] = ()
    nodes: dict[str, Node] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    machine: Machine | None = None
    is_gone: bool = False
    gone_seconds: float = 20.0
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
        mine, found = identity(), dict(identified(fit))
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
        if can_connect(self.control):
            self._silent_since = 0.0
            return True
        self._silent_since = self._silent_since or time.monotonic()
        if time.monotonic() > self._silent_since + self.gone_seconds:
            self.is_gone = True
            raise ClusterError(
                f"--cluster {self.address}: it has not answered for {self.gone_seconds:g} s; what "
                "is finished is kept, and --resume goes on once it is back"
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
