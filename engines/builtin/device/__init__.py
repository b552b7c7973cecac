"""What runs the forward pass: one interface, ``launch(batch) -> handle``, one device a file."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from engines.protocol import BoolArray, EngineConfig, Int32Array, Int64Array, ReadyDevice

if TYPE_CHECKING:
    from engines.builtin.logprobs import DeviceLogprobs
    from engines.builtin.model import Parallel
    from engines.builtin.worker import SchedulerOutput


class DeviceBatch(NamedTuple):
    """What a forward pass is given, a row a request.

    ``request_index`` int64; ``position`` int64, output tokens before this step; ``num_scheduled``
    int32, tokens to compute; ``context`` int64, tokens in the KV cache after this step;
    ``samples`` bool or None, whether a row's prompt is through, so that it samples (None: all);
    ``decodes`` bool or None, whether it was through before, so that drafts are verified (None: no
    drafts). ``scheduled``: what the scheduler sent, and ``block_table`` int32 ``[slots,
    max_blocks]`` the runner's own, valid during the launch; a device with a model needs both.
    """

    request_index: Int64Array
    position: Int64Array
    num_scheduled: Int32Array
    context: Int64Array
    samples: BoolArray | None
    decodes: BoolArray | None
    scheduled: "SchedulerOutput | None" = None
    block_table: Int32Array | None = None

    def taken(self, places: Int64Array) -> "DeviceBatch":
        """The same with the rows at ``places`` alone."""
        assert self.scheduled is not None
        return self._replace(
            request_index=self.request_index[places],
            position=self.position[places],
            num_scheduled=self.num_scheduled[places],
            context=self.context[places],
            samples=None if self.samples is None else self.samples[places],
            decodes=None if self.decodes is None else self.decodes[places],
            scheduled=self.scheduled._replace(rows=self.scheduled.rows[places]),
        )

    def after(self, num_tokens: Int32Array | None) -> tuple[Int64Array, Int64Array]:
        """Tokens in the KV cache and output tokens after this step, int64 ``[num_reqs]`` each.

        ``num_tokens``: see `StepHandle`.
        """
        sampled = 1 if num_tokens is None else num_tokens
        context = self.context
        if self.decodes is not None:
            # A decode step computes as many positions as it may sample; the rejected are undone.
            context = context - self.decodes * (self.num_scheduled - sampled)
        return context, self.position + sampled


class StepHandle(Protocol):
    """A launched step."""

    num_tokens: Int32Array | None
    """int32 ``[num_reqs]``: tokens that each row will have sampled; None: one each."""
    tokens: Int32Array
    """int32 ``[num_reqs, max_tokens]``, on the host once waited for, -1 beyond what a row sampled.
    Valid until two more steps have been launched, ``num_scheduler_steps`` passes each."""
    logprobs: "DeviceLogprobs | None"
    """Of the tokens, on the host once waited for; None where none were asked for."""
    step_seconds: float
    """How long the device says the step takes, once waited for; 0 where it takes no time."""

    def wait(self) -> tuple[int, int]:
        """Block until the tokens are there; nanoseconds blocked, and of these too many."""
        ...


class DeviceClass(Protocol):
    """What a device answers before there is one, in a process that may not import torch."""

    needs_profile: bool
    """Whether ``device_profile`` says anything to it."""
    has_model: bool
    """Whether its tokens come out of a model; otherwise they are scripted."""
    backend: str
    """Of ``torch.distributed``, between ranks; "" where there can be but one."""
    takes_gpu: bool
    """See `engines.protocol.Traits`."""

    @staticmethod
    def check(config: EngineConfig) -> None:
        """Raise ValueError where it cannot run this at all."""
        ...

    @staticmethod
    def build(config: EngineConfig, parallel: "Parallel") -> "Device":
        """It, one of ``parallel.size`` ranks. Raises ValueError where it cannot be."""
        ...


class Device(Protocol):
    """Runs forward passes in the order of their launch."""

    def num_kv_tokens(self, config: EngineConfig) -> int:
        """How many tokens its KV cache can hold."""
        ...

    def initialize_cache(self, num_blocks: int) -> ReadyDevice:
        """Lay the cache out, once and before the first launch.

        Raises ValueError where it does not fit.
        """
        ...

    def launch(self, batch: DeviceBatch) -> StepHandle:
        """Start a step and return at once."""
        ...

    def stats(self) -> dict[str, float]:
        """See `engines.protocol.StepEngine.device_stats`."""
        ...
