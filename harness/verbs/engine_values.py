"""What a verb measures where nobody says: its own defaults, so far as the engines have them."""

from collections.abc import Mapping, Sequence

from engines.protocol import EngineClass
from engines.registry import ENGINES
from harness.axes import AXES, Value
from harness.experiment.grid import takes
from harness.verbs.request import VerbRequest


def engine_values(request: VerbRequest) -> dict[str, list[Value]]:
    """The values of every axis: those that are given as they are.

    Of an axis that no engine asked for takes there is only the default; where an engine has names
    of its own they stand in the place of the verb's, all of them for several. Raises ValueError
    for an unknown engine.
    """
    engines = [ENGINES.load(str(name)) for name in request.values("engine")]
    return {
        axis: values if axis in request.axes else _taken(engines, axis, values)
        for axis, values in request.grid().items()
    }


def _taken(engines: Sequence[EngineClass], axis: str, values: list[Value]) -> list[Value]:
    takers = [engine for engine in engines if takes(engine, AXES[axis])]
    each = (_own(engine.own_values, axis, values) for engine in takers)
    return list(dict.fromkeys(value for found in each for value in found)) or [AXES[axis].default]


def _own(own_values: Mapping[str, tuple[str, ...]], axis: str, values: list[Value]) -> list[Value]:
    """``values``, or the engine's own names in the place of those that it does not know."""
    own: list[Value] = list(own_values.get(axis, values)) or [AXES[axis].default]
    if set(values) <= {AXES[axis].default, *own}:
        return values
    return own if len(values) > 1 else own[:1]
