"""The names that a shell can complete an axis' values with."""

from collections.abc import Callable, Iterable

from engines.builtin import registries
from engines.builtin.device.profile import shipped_profiles
from engines.model_configs import shipped_models
from engines.registry import ENGINES
from harness.collector.policy import DESCRIPTIONS
from workloads import catalog

_VALUES: dict[str, Callable[[], Iterable[str]]] = {
    "workload": catalog.workload_names,
    "engine": ENGINES.names,
    "model": shipped_models,
    "device": registries.DEVICES.names,
    "device_profile": shipped_profiles,
    "representation": registries.REPRESENTATIONS.names,
    "delivery": registries.DELIVERIES.names,
    "gc": DESCRIPTIONS.keys,
    "scheduler": registries.SCHEDULERS.names,
    "scheduling_policy": registries.SCHEDULING_POLICIES.names,
    "detokenizer": registries.DETOKENIZERS.names,
    "logprobs": registries.LOGPROBS.names,
    "request_streams": registries.REQUEST_STREAMS.names,
    "output_processing": registries.OUTPUT_PROCESSING.names,
    "worker": registries.WORKERS.names,
    "wire": registries.WIRES.names,
    "prefix_caching": lambda: ("off", "on"),
    "setup": lambda: ("lean", "shipped", "served"),
    "enforce_eager": lambda: ("off", "on"),
}


def values_of(axis: str) -> Callable[[], Iterable[str]]:
    """The names that an axis is known to take; none where it takes numbers or paths."""
    return _VALUES.get(axis, tuple)
