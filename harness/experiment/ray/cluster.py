"""A Ray cluster's nodes: which of them measure, and why the others do not."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from harness.experiment.known_noise import KnownNoise
from harness.experiment.ray.address import can_connect
from harness.experiment.ray.error import ClusterError
from harness.experiment.ray.identity import identified
from harness.experiment.ray.on_node import Identity, identity
from harness.experiment.ray.tasks import Node
from harness.experiment.same_origin import machine_differences
from harness.machine.describe import Machine
from harness.not_measured import NotMeasured


class WantedNodes(NamedTuple):
    """Which nodes are to measure: ``without`` some, of the machine class of the node ``like``, ""
    for that of most, and none of which ``noise`` says that it is too noisy; None: however noisy.
    """

    without: Collection[str] = ()
    like: str = ""
    noise: KnownNoise | None = None


EVERY_NODE = WantedNodes()


@dataclass(slots=True)
class Cluster:
    """Connected. ``nodes`` measure; ``left_out`` says of each other node why it does not.

    ``control``: HOST:PORT of the store that Ray has of all nodes. ``identity``: of each node that
    measures; None before the first. ``gone_seconds``: without an answer, after which the cluster is
    taken to be gone.
    """

    address: str
    control: str
    wanted: WantedNodes = EVERY_NODE
    nodes: dict[str, Node] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    identity: Identity | None = None
    is_gone: bool = False
    gone_seconds: float = 20.0
    _known: set[str] = field(default_factory=set)
    _silent_since: float = 0.0

    def admit(self) -> None:
        """Ask each node that is new who it is, and forget those that are gone.

        All must have this machine's interpreter and packages, and get its code where they have
        another. They are of one machine class: of the node that ``wanted`` names, else the one that
        most have at the first call. Raises ClusterError where the cluster is gone, or there is no
        such node.
        """
        if not self.answers():
            return
        alive = {node.id: node for node in _alive()}
        self.nodes = {id: node for id, node in self.nodes.items() if id in alive}
        new = [node for id, node in alive.items() if id not in self._known]
        if not new:
            return
        self._known |= {node.id for node in new}
        mine, equal = identity(), dict[Node, Identity]()
        for node, told in identified(list(filter(self._is_wanted, new)), mine).items():
            if isinstance(told, NotMeasured):
                self.left_out[node.name] = told.reason
            elif differing := mine.differences(told):
                self.left_out[node.name] = f"it differs from here in {'; '.join(differing)}"
            else:
                equal[node] = told
        if self.identity is None and equal:
            self.identity = msgspec.structs.replace(mine, machine=self._class(equal))
        for node, of in equal.items():
            self._take(node, of)

    def _class(self, equal: Mapping[Node, Identity]) -> Machine:
        """Of the nodes that are to measure."""
        like = self.wanted.like
        found = [of.machine for node, of in equal.items() if like in ("", node.name)]
        if not found:
            names = ", ".join(sorted(node.name for node in equal))
            raise ClusterError(f"--like {like}: no node that can measure; there are {names}")
        return _most_common(found)

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

    @property
    def unmeasured(self) -> list[str]:
        """Names of nodes that measure and whose noise should be known and is not."""
        of, known = self.identity, self.wanted.noise
        if of is None or known is None:
            return []
        return [node.name for node in self.nodes.values() if known.find(node.name, of) is None]

    def _is_wanted(self, node: Node) -> bool:
        if node.name in self.wanted.without:
            self.left_out[node.name] = "--leave-out names it"
        elif node.cpus < 1:
            self.left_out[node.name] = "it offers Ray no CPU"
        return node.name not in self.left_out

    def _take(self, node: Node, of: Identity) -> None:
        assert self.identity is not None
        known = self.wanted.noise or KnownNoise()
        if differing := next(machine_differences(self.identity.machine, of.machine), ""):
            self.left_out[node.name] = (
                f"it is of another class than those that measure, {differing}; --like "
                f"{node.name} measures on its own"
            )
        elif why := known.objection(node.name, of):
            self.left_out[node.name] = why
        else:
            self.nodes[node.id] = node

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


def _most_common(machines: Iterable[Machine]) -> Machine:
    classes: list[Machine] = []
    count: Counter[int] = Counter()
    for machine in machines:
        like = (n for n, each in enumerate(classes) if not list(machine_differences(each, machine)))
        number = next(like, len(classes))
        if number == len(classes):
            classes.append(machine)
        count[number] += 1
    return classes[count.most_common(1)[0][0]]
