"""What is known of the noise of a cluster's nodes: ``doctor`` keeps it, who measures reads it."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from harness import format as fmt
from harness.experiment.node_noise import MOST_DETECTABLE, ROUNDS, NodeNoise
from harness.experiment.ray.on_node import Identity
from harness.files import StoreError, decode_versioned, indented, set_aside, write_whole

_FILE = "node-noise.json"
_SCHEMA = "gcbench.node-noise/1"


class MeasuredNode(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a ``metric`` on a node, and who that said it is."""

    identity: Identity
    metric: str
    noise: NodeNoise

    def is_still(self, identity: Identity) -> bool:
        """Whether the node is the machine, code and interpreter that it was."""
        before = self.identity
        return not before.differences(identity) and identity.is_like(before.machine)


class KnownNoise(msgspec.Struct, frozen=True, kw_only=True):
    """By the name of a node the last that was measured there."""

    nodes: dict[str, MeasuredNode] = {}
    schema: str = _SCHEMA

    def find(self, name: str, now: Identity) -> MeasuredNode | None:
        """Of a node as it is now; None where it was another machine, code or interpreter."""
        found = self.nodes.get(name)
        return found if found is not None and found.is_still(now) else None

    def objection(self, name: str, now: Identity) -> str:
        """Why not to measure on a node; "" where it is fit, or nothing is known."""
        found = self.find(name, now)
        if found is None or found.noise.is_fit:
            return ""
        least = fmt.rough_percent(MOST_DETECTABLE)
        return (
            f"it is too noisy: {ROUNDS} rounds there detect {fmt.percent(found.noise.mde)} of "
            f"{found.metric}, and {least} is asked for; gcbench doctor --noise --cluster measures "
            "it again"
        )


def known_noise(output: Path) -> KnownNoise:
    """What a folder of results has; nothing where it cannot be read, and then it is set aside."""
    path = output / _FILE
    if not path.exists():
        return KnownNoise()
    try:
        return decode_versioned(path, KnownNoise, _SCHEMA)
    except StoreError:
        with suppress(StoreError):
            set_aside(path)
        return KnownNoise()


def keep_noise(output: Path, metric: str, identity: Identity, found: Iterable[NodeNoise]) -> None:
    """Keep what nodes that are all alike were found to have. Raises StoreError."""
    new = {
        noise.node: MeasuredNode(identity=identity, metric=metric, noise=noise)
        for noise in found
        if noise.mde is not None
    }
    known = known_noise(output)
    write_whole(output / _FILE, indented(KnownNoise(nodes=known.nodes | new)))
