"""What runs the forward pass: one interface, ``launch(batch) -> handle``, one device a file."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from engines.protocol import BoolArray, EngineConfig, Int32Array, Int64Array

if TYPE_CHECKING:
    import torch

    from engines.builtin.logprobs import DeviceLogprobs


class DeviceBatch(NamedTuple):
    """What a forward pass is given, a row a request.

    ``request_index`` int64; ``position`` int64, output tokens before this step; ``num_scheduled``
    int32, tokens to compute; ``context`` int64, tokens in the KV cache after this step;
    ``samples`` bool or None, whether a row's prompt is through, so that it samples (None: all);
    ``decodes`` bool or None, whether it was through before, so that drafts are verified (None: no
    drafts).
    """

    request_index: Int64Array
    position: Int64Array
    num_scheduled: Int32Array
    context: Int64Array
    samples: BoolArray | None
    decodes: BoolArray | None


class StepHandle(Protocol):
    """A launched step."""

    tokens: "torch.Tensor"
    """int32 ``[num_reqs, max_tokens]`` on the device, -1 beyond what a row sampled."""
    logprobs: "DeviceLogprobs | None"
    """Of the tokens, on the host; None where none were asked for."""
    step_seconds: float
    """How long the device says the step takes; 0 where it takes no time or does not know."""

    def wait(self) -> tuple[int, int]:
        """Block until the tokens are there; nanoseconds blocked, and of these too many."""
        ...


class Device(Protocol):
    """Runs forward passes in the order of their launch; built from an `EngineConfig`."""

    needs_profile: bool
    """Whether ``device_profile`` says anything to it."""

    @staticmethod
    def num_kv_tokens(config: EngineConfig) -> int:
        """How many tokens the device's KV cache holds."""
        ...

    def launch(self, batch: DeviceBatch) -> StepHandle:
        """Start a step and return at once."""
        ...
