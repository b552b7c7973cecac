"""``wire`` and ``wire_spin``, read: what crosses, and how it gets there."""

import math
from typing import NamedTuple

from engines.builtin.registries import TRANSPORTS, WIRES
from engines.nearest import nearest
from engines.protocol import EngineConfig

_AUTO = "auto"
_MOST_SECONDS = 60.0
_USUAL_TRANSPORT = "sockets"
_USUAL_FORMAT = {"shared-memory": "pickle5", "gloo": "pickle"}
"""Of a transport that is named alone: what vLLM sends by it, or sent."""


class WireChoice(NamedTuple):
    """Names in their registries."""

    format: str
    transport: str


def parse_wire(text: str) -> WireChoice:
    """Raises ValueError for an unknown part, with the nearest."""
    name, plus, transport = text.partition("+")
    if not plus and name in _USUAL_FORMAT:
        return WireChoice(_USUAL_FORMAT[name], name)
    if name not in WIRES.names():
        near = ", ".join(nearest(name, [*WIRES.names(), *_USUAL_FORMAT]))
        raise ValueError(f"unknown wire {name!r}; did you mean {near}?")
    if plus:
        TRANSPORTS.check(transport)
    return WireChoice(name, transport or _USUAL_TRANSPORT)


def asked_seconds(config: EngineConfig) -> float | None:
    """What ``wire_spin`` asks for, None for auto. Raises ValueError for what is no time."""
    if config.wire_spin == _AUTO:
        return None
    try:
        seconds = float(config.wire_spin)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(
            f"--axis wire-spin={config.wire_spin}: must be auto or seconds, 0 to "
            f"{_MOST_SECONDS:g} (1 "
            "is vLLM's)"
        )
    return seconds
