"""Tasks of a node: functions that Ray sends whole, and who a node says that it is."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import msgspec

from harness.experiment.cluster_error import reason
from harness.experiment.on_node import Identity

_ANSWER_SECONDS = 60.0


class Node(NamedTuple):
    """A node as Ray knows it; ``name`` is the one it was started with, or made of its id."""

    id: str
    name: str
    address: str
    cpus: float
    gpus: float


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


def identified(nodes: Collection[Node]) -> Iterator[tuple[str, Identity | str]]:
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
                yield id, f"it cannot be asked: {reason(error)}"
        except ray.exceptions.RayError as error:
            yield id, f"it cannot be asked: {reason(error)}"
