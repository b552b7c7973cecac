"""What crosses the worker boundary: one format a file, found by name in `registries.WIRES`."""

from typing import Any, Protocol


class Wire(Protocol):
    """Turns a step's messages into bytes and back; may keep state, one instance an end."""

    def encode(self, message: Any) -> bytes:
        """Bytes of a message."""
        ...

    def decode(self, data: bytes) -> Any:
        """The message again."""
        ...
