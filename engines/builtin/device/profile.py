"""How long a forward pass takes on an accelerator that is not here: a roofline, from a file."""

import tomllib
from pathlib import Path

import msgspec
import numpy as np

from engines.builtin.device import DeviceBatch
from engines.nearest import nearest
from engines.regular_file import read_regular

SHIPPED_PROFILES = Path(__file__).parent / "profiles"
"""The folder of the profiles that come with the package."""


_MOST_BYTES = 16 * 2**10
"""A file of one long dotted key keeps tomllib busy for a second; its time grows with the square."""


class FitError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far modelled steps are from the measured ones they were fitted to, as shares of them."""

    median: float
    worst: float


class HostLaunch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a step takes the host on an accelerator, all in seconds.

    Until the accelerator can begin: ``replay_seconds`` and ``replay_seconds_per_row`` where rows
    decode by a captured graph, ``eager_seconds`` and ``eager_seconds_per_token`` where prompts
    run. ``tail_seconds``: of the launch, after that. ``wake_up_seconds``: from the step's end until
    its tokens are on the host. ``gil_free_share``: of the launch, in which other threads can run.
    """

    replay_seconds: float
    replay_seconds_per_row: float
    eager_seconds: float
    eager_seconds_per_token: float
    tail_seconds: float
    wake_up_seconds: float
    gil_free_share: float

    def seconds_before(self, num_rows: int, num_tokens: int) -> float:
        """Until the accelerator can begin: with rows that decode, and tokens of prompts."""
        seconds = 0.0
        if num_rows:
            seconds += self.replay_seconds + num_rows * self.replay_seconds_per_row
        if num_tokens:
            seconds += self.eager_seconds + num_tokens * self.eager_seconds_per_token
        return seconds


NO_HOST = HostLaunch(
    replay_seconds=0.0,
    replay_seconds_per_row=0.0,
    eager_seconds=0.0,
    eager_seconds_per_token=0.0,
    tail_seconds=0.0,
    wake_up_seconds=0.0,
    gil_free_share=0.0,
)
"""Of a profile that knows the device's time only."""


class DeviceProfile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model on an accelerator. ``source`` says where the figures come from.

    Bytes, bytes per second, floating-point operations per second, seconds. A multiply-add
    counts as two operations. The rates of attention are those of the linear layers where they are
    None. ``host``: what launching takes the host. ``machine`` and ``fit_error``: of a calibrated
    profile, where and how well.

    Of a mixture of experts ``weight_bytes`` is what every step reads, ``routed_weight_bytes`` all
    routed experts together, and ``routed_share`` the part of these that one token takes.
    """

    name: str
    model: str
    accelerator: str
    source: str
    weight_bytes: float
    kv_bytes_per_token: float
    flops_per_token: float
    attention_flops_per_token_pair: float
    memory_bytes: float
    bandwidth_bytes_per_second: float
    flops_per_second: float
    launch_overhead_seconds: float
    attention_bandwidth_bytes_per_second: float | None = None
    attention_flops_per_second: float | None = None
    routed_weight_bytes: float = 0.0
    routed_share: float = 0.0
    host: HostLaunch = NO_HOST
    machine: str = ""
    fit_error: FitError | None = None

    def step_seconds(self, batch: DeviceBatch) -> float:
        """Modelled length of a step in seconds."""
        return self.seconds(
            int(batch.num_scheduled.sum()),
            int(batch.context.sum()),
            int(np.dot(batch.num_scheduled, batch.context)),
        )

    def seconds(self, num_tokens: int, context_tokens: int, token_pairs: int) -> float:
        """The same from sums over the step's requests: tokens scheduled, context, their product.

        Roofline (Williams, Waterman and Patterson, CACM 2009), once for the linear layers and
        once for attention, one after the other: each takes the longer of its bytes over the
        bandwidth and its arithmetic over the rate; plus the launch. Tokens choose their experts at
        random, so n of them read the share 1 - (1 - ``routed_share``)^n of the routed weights.
        """
        weights, linear, kv, attention = self.parts(num_tokens, context_tokens, token_pairs)
        return max(weights, linear) + max(kv, attention) + self.launch_overhead_seconds

    def parts(
        self, num_tokens: int, context_tokens: int, token_pairs: int
    ) -> tuple[float, float, float, float]:
        """Seconds that each would take alone: reading the weights, the linear layers' arithmetic,
        reading keys and values, attention's arithmetic.
        """
        bandwidth, flops = self.bandwidth_bytes_per_second, self.flops_per_second
        attention_bandwidth = self.attention_bandwidth_bytes_per_second or bandwidth
        attention_flops = self.attention_flops_per_second or flops
        routed = self.routed_weight_bytes * (1 - (1 - self.routed_share) ** num_tokens)
        return (
            (self.weight_bytes + routed) / bandwidth,
            num_tokens * self.flops_per_token / flops,
            context_tokens * self.kv_bytes_per_token / attention_bandwidth,
            token_pairs * self.attention_flops_per_token_pair / attention_flops,
        )

    def latency_seconds(
        self, num_rows: int, num_tokens: int, context_tokens: int, token_pairs: int
    ) -> float:
        """From a step's launch on an idle device until the host has its tokens: `seconds` of such
        a step, ``num_rows`` of whose tokens decode, and what the host adds.
        """
        host = self.host
        device = self.seconds(num_tokens, context_tokens, token_pairs)
        before = host.seconds_before(num_rows, num_tokens - num_rows)
        return before + max(device + host.wake_up_seconds, host.tail_seconds)

    def num_kv_tokens(self) -> int:
        """Tokens whose keys and values fit beside the weights in 90 % of the memory."""
        weights = self.weight_bytes + self.routed_weight_bytes
        return int((0.9 * self.memory_bytes - weights) / self.kv_bytes_per_token)


def shipped_profiles() -> list[str]:
    """Names of the profiles that come with the package."""
    return sorted(
        {path.stem.removesuffix(".calibrated") for path in SHIPPED_PROFILES.glob("*.toml")}
    )


def load_profile(name_or_path: str) -> DeviceProfile:
    """Read a shipped profile by name or any by path; a calibrated one of the name comes first.

    Raises ValueError for an unknown name, a file that is none, a missing or unknown field.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        candidates = [
            SHIPPED_PROFILES / f"{name_or_path}{tail}" for tail in (".calibrated.toml", ".toml")
        ]
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is None:
            near = ", ".join(nearest(name_or_path, shipped_profiles()))
            raise ValueError(
                f"unknown device profile {name_or_path!r}; did you mean {near}? "
                "(or the path of a .toml file)"
            )
        path = found
    try:
        return msgspec.convert(
            tomllib.loads(read_regular(path, _MOST_BYTES).decode()), DeviceProfile, strict=False
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"device profile {path}: cannot be read ({error})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"device profile {path}: {error}") from None
