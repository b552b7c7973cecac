"""Sampled tokens in their representation as arrays that can cross, and what they are made of."""

import pickle
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from engines.builtin.registries import REPRESENTATIONS
from engines.builtin.wire.unpickle import unpickle
from engines.protocol import EngineConfig, Int32Array


@runtime_checkable
class CrossesAsArrays(Protocol):
    """A representation that says which arrays it is."""

    def to_buffers(self, sampled: Any) -> Sequence[Int32Array]:
        """Of one or two dimensions, int32, contiguous."""
        ...

    def from_buffers(self, arrays: Sequence[Int32Array]) -> Any:
        """The representation over them, as `from_device` made it."""
        ...


class SampledTokens:
    """Takes a representation apart and puts it together; one that cannot say how is pickled."""

    def __init__(self, config: EngineConfig) -> None:
        made = REPRESENTATIONS.load(config.representation)()
        self._known = made if isinstance(made, CrossesAsArrays) else None

    @property
    def is_pickled(self) -> bool:
        """Whether it is one that cannot say."""
        return self._known is None

    def apart(self, sampled: Any) -> Sequence[Int32Array] | bytes:
        """Its arrays, or its pickle."""
        if self._known is None:
            return pickle.dumps(sampled, 5)
        return self._known.to_buffers(sampled)

    def together(self, parts: Sequence[Int32Array] | bytes | memoryview) -> Any:
        """The same again."""
        if self._known is None:
            assert isinstance(parts, (bytes, memoryview))
            return unpickle(parts)
        assert not isinstance(parts, (bytes, memoryview))
        return self._known.from_buffers(parts)
