"""What crosses the worker boundary: one format a file, found by name in `registries.WIRES`."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from engines.builtin.worker import ModelRunnerOutput, SchedulerOutput
from engines.protocol import EngineConfig

Buffer = bytes | bytearray | memoryview


class Wire(Protocol):
    """Both directions, one instance an end; what it keeps from step to step is its own affair.

    Steps come and go in their order. Data that is decoded is valid until the next call.
    """

    def __init__(self, config: EngineConfig) -> None:
        """At either end, from the same configuration."""
        ...

    def encode_step(self, step: SchedulerOutput) -> Sequence[Buffer]:
        """What the ranks are sent: buffers that go one after the other, once for all of them."""
        ...

    def encode_whole(self, step: SchedulerOutput, steps_since: int) -> Sequence[Buffer]:
        """The same for a rank that has lost its state, ``steps_since`` others after it. From there
        on what all ranks are sent is right for it again.
        """
        ...

    def decode_step(self, data: memoryview) -> SchedulerOutput:
        """A rank's side of it. Raises WireError for data that it cannot have been sent,
        LostStateError where it needs a whole step first.
        """
        ...

    def encode_tokens(self, output: ModelRunnerOutput) -> Sequence[Buffer]:
        """What comes back."""
        ...

    def decode_tokens(self, data: memoryview) -> ModelRunnerOutput:
        """The scheduler's side of it. Raises WireError as `decode_step`."""
        ...

    def tokens_stay(self, output: ModelRunnerOutput) -> None:
        """The scheduler's side of what does not cross, because the first rank is on it too."""
        ...


@runtime_checkable
class TellsFields(Protocol):
    """A wire that can say what the bytes of its messages are for, by the path of the field.

    Of `engines.pickle_fields.NAMES` and `REST` are those that are for none.
    """

    def step_fields(self, message: bytes) -> dict[str, int]:
        """Of what `Wire.encode_step` made."""
        ...

    def tokens_fields(self, message: bytes) -> dict[str, int]:
        """Of what `Wire.encode_tokens` made."""
        ...


class WireError(RuntimeError):
    """A message that the other end did not send."""


class LostStateError(WireError):
    """A difference to something that this end does not have; a whole step mends it."""


class Stateless:
    """A step is whole whatever was sent before it."""

    def encode_step(self, step: SchedulerOutput) -> Sequence[Buffer]:
        """Whoever subclasses does."""
        raise NotImplementedError

    def encode_whole(self, step: SchedulerOutput, steps_since: int) -> Sequence[Buffer]:
        """As ever."""
        return self.encode_step(step)

    def tokens_stay(self, output: ModelRunnerOutput) -> None:
        """Nothing is made of them."""
