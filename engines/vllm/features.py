"""What every request asks beside its tokens, in vLLM's words."""

from typing import Any

from engines.prepared.features import ANY_TEXT, NEVER_STOPS, Features, read_features
from engines.protocol import EngineConfig

_KNOWN = ("stop", "grammar", "kv-connector", "samples", "lora")


def features_of(config: EngineConfig) -> Features:
    """Raises ValueError for those that are not known."""
    return read_features(config, _KNOWN)


def sampling_fields(features: Features) -> dict[str, Any]:
    """Fields of vLLM's ``SamplingParams``, and of its API server's requests."""
    asked: dict[str, Any] = {}
    if features.samples > 1:
        asked |= {"n": features.samples, "temperature": 1.0}  # refused of greedy sampling
    if features.has_stop:
        asked["stop"] = [NEVER_STOPS]
    if features.has_grammar:
        asked["structured_outputs"] = {"regex": ANY_TEXT}
    return asked


def engine_arguments(features: Features) -> dict[str, Any]:
    """Of vLLM's ``EngineArgs``."""
    asked: dict[str, Any] = {}
    if features.num_loras:
        asked |= dict.fromkeys(("max_loras", "max_cpu_loras"), features.num_loras)
        asked["enable_lora"] = True
    if features.has_connector:
        from vllm.config import KVTransferConfig

        asked["kv_transfer_config"] = KVTransferConfig(
            kv_connector="NullConnector",
            kv_connector_module_path="engines.vllm.null_connector",
            kv_role="kv_both",
        )
    return asked
