"""Tasks of a node: functions that Ray sends whole."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Node(NamedTuple):
    """A node as Ray knows it; ``name`` is the one it was started with, or made of its id.

    ``path``: PYTHONPATH of its tasks, where our code was carried there; "": it has its own.
    """

    id: str
    name: str
    address: str
    cpus: float
    gpus: float
    path: str = ""


def on_node(function: Callable[..., Any], node: Node, **options: Any) -> Any:
    """A function of `there` as a task that only this node may run, once."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if node.path:
        options["runtime_env"] = {"env_vars": {"PYTHONPATH": node.path}}
    pinned = NodeAffinitySchedulingStrategy(node.id, soft=False)
    return ray.remote(function()).options(max_retries=0, scheduling_strategy=pinned, **options)


def run_there() -> Callable[..., Iterator[Any]]:
    """`on_node.run`, as a function that Ray sends whole.

    A node's Ray imports by name only what is on its path, and of ours that is ``gcbench`` alone.
    """

    def run(asked: bytes, names: list[str], *files: bytes) -> Iterator[Any]:
        import sys

        from gcbench.code_root import code_root

        sys.path.insert(0, str(code_root()))
        from harness.experiment.ray.on_node import run_asked

        for heard in run_asked(asked, dict(zip(names, files, strict=True))):
            yield tuple(heard)

    return run
