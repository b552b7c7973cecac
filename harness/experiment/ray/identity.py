"""Who each node of a Ray cluster is, once it has our code."""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from harness.experiment.ray.carried_code import packed_code, unpack_there
from harness.experiment.ray.error import cluster_reason
from harness.experiment.ray.on_node import Identity
from harness.experiment.ray.tasks import Node, on_node
from harness.not_measured import NotMeasured

_ANSWER_SECONDS = 60.0


def identified(nodes: Collection[Node], mine: Identity) -> dict[Node, Identity | NotMeasured]:
    """Who each node is, or why it does not say.

    One that has another code than ``mine``, or none, gets it first, and then has a `path`.
    """
    import ray

    answers = _identities(nodes)
    if lacking := [node for node, told in answers.items() if _lacks_code(told, mine)]:
        code = packed_code()
        paths = _asked(lacking, unpack_there, code.name, ray.put(code.content))
        answers = {node: told for node, told in answers.items() if node not in paths}
        answers |= {node: why for node, why in paths.items() if isinstance(why, Exception)}
        answers |= _identities(
            [node._replace(path=path) for node, path in paths.items() if isinstance(path, str)]
        )
    return {
        node: NotMeasured(_words(told)) if isinstance(told, Exception) else told
        for node, told in answers.items()
    }


def _identities(nodes: Collection[Node]) -> dict[Node, Identity | Exception]:
    found: dict[Node, Identity | Exception] = {}
    for node, answer in _asked(nodes, identify_there).items():
        try:
            is_told = isinstance(answer, bytes)
            found[node] = msgspec.json.decode(answer, type=Identity) if is_told else answer
        except msgspec.MsgspecError as error:
            found[node] = error
    return found


def _asked(
    nodes: Collection[Node], function: Callable[..., Any], *arguments: Any
) -> dict[Node, Any]:
    """What a function says on each node, or the exception in its place."""
    import ray

    asked = {node: on_node(function, node, num_cpus=0).remote(*arguments) for node in nodes}
    ray.wait(list(asked.values()), num_returns=max(1, len(asked)), timeout=_ANSWER_SECONDS)
    return {node: _got(ref) for node, ref in asked.items()}


def _got(ref: Any) -> Any:
    import ray

    try:
        return ray.get(ref, timeout=0)
    except ray.exceptions.RayError as error:
        return error


def _lacks_code(told: Identity | Exception, mine: Identity) -> bool:
    """Whether another code answered, or failed to."""
    import ray

    if isinstance(told, Identity):
        return told.code != mine.code
    return isinstance(told, ray.exceptions.RayTaskError | msgspec.MsgspecError)


def _words(error: Exception) -> str:
    """Why a node does not say who it is."""
    import ray

    if isinstance(error, ray.exceptions.GetTimeoutError):
        return f"it has not answered within {_ANSWER_SECONDS:g} s"
    cause = getattr(error, "cause", None)
    if isinstance(cause, ModuleNotFoundError):
        return f"its Python has no {cause.name}; install there what gcbench needs"
    return f"it cannot be asked: {cluster_reason(error)}"


def identify_there() -> Callable[[], bytes]:
    """`identify`, as a function that carries itself: see `run_there`."""

    def identify() -> bytes:
        import sys

        from gcbench.code_root import code_root

        sys.path.insert(0, str(code_root()))
        from harness.experiment.ray.on_node import identify

        return identify()

    return identify
