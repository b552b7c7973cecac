"""Where the runner lives, and what crosses to it and back; one worker a file."""

import copyreg
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from engines.protocol import BoolArray, EngineConfig, Int32Array, ReadyDevice, Sampling


class NewRequests(NamedTuple):
    """Requests that take a row with this step, a column a fact.

    ``token_ids``: int32 each, the prompt and what was sampled before a preemption;
    ``num_computed``: of these, tokens whose keys and values a shared prefix holds already;
    ``num_output``: tokens sampled before; ``sampling``: their own, None for the engine's, and empty
    where all have that.
    """

    rows: list[int]
    request_index: list[int]
    token_ids: list[Int32Array]
    num_computed: list[int]
    num_output: list[int]
    sampling: Sequence[Sampling | None] = ()

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """As any named tuple's, but without an empty ``sampling``, which then takes no byte."""
        given = self if self.sampling else self[:-1]
        return copyreg.__newobj__, (NewRequests, *given)  # type: ignore[attr-defined]


NOBODY = NewRequests([], [], [], [], [])


class SchedulerOutput(NamedTuple):
    """What a step is to compute: only what changed crosses, the runner keeps the rest.

    A row a request: ``rows`` int32 ``[num_reqs]`` (the runner's slots), ``num_scheduled`` int32
    ``[num_reqs]`` tokens, of which the runner leaves out drafts past ``max_model_len``,
    ``samples`` bool ``[num_reqs]`` or None where all sample. Blocks that were given out:
    ``block_rows``, ``block_positions``, ``block_ids``, all int32 ``[num_new_blocks]``.
    """

    rows: Int32Array
    num_scheduled: Int32Array
    samples: BoolArray | None
    new: NewRequests
    block_rows: Int32Array
    block_positions: Int32Array
    block_ids: Int32Array


class ModelRunnerOutput(NamedTuple):
    """A step's tokens in their representation, and what the device says of the step.

    ``logprobs``: in their shape, None where none were asked for.
    """

    sampled: Any
    device_ns: int
    late_ns: int
    device_seconds: float
    logprobs: Any = None


class Worker(Protocol):
    """Runs steps in the order of their launch; two may be under way at once."""

    wire_bytes: int

    @staticmethod
    def contradiction(config: EngineConfig) -> str:
        """Why it does not go with the rest, in one sentence, or ""."""
        ...

    def wire_seconds(self) -> dict[str, float]:
        """See `engines.protocol.StepEngine.wire_seconds`; between steps only."""
        ...

    def num_kv_tokens(self) -> int:
        """How many tokens its device's KV cache can hold."""
        ...

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Lay the cache out, before the first launch. Raises ValueError where it does not fit."""
        ...

    def device_stats(self) -> dict[str, float]:
        """See `engines.protocol.StepEngine.device_stats`; between steps only."""
        ...

    def launch(self, scheduler_output: SchedulerOutput) -> None:
        """Start a step and return at once."""
        ...

    def wait(self) -> None:
        """Block until the oldest step's tokens are there."""
        ...

    def handoff(self) -> ModelRunnerOutput:
        """The oldest step's tokens, brought to this side in their representation."""
        ...

    def rpc(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        """Call ``function(process, *args)`` in each process of the worker, between steps."""
        ...

    def shutdown(self) -> None:
        """End the worker; safe to call twice."""
        ...


@runtime_checkable
class SendsMessages(Protocol):
    """A worker with ranks in processes of their own, whose messages can be looked at."""

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        """See `engines.protocol.StepEngine.show_messages`."""
        ...

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        """See `engines.protocol.StepEngine.message_fields`."""
        ...
