"""Which delivery a configuration means, and what it must not ask for."""

from engines.builtin.delivery import Delivery
from engines.builtin.logprobs import parse_logprobs
from engines.builtin.output_processing import OutputProcessing
from engines.builtin.registries import (
    DELIVERIES,
    DETOKENIZERS,
    LOGPROBS,
    OUTPUT_PROCESSING,
    REQUEST_STREAMS,
)
from engines.builtin.text.stop_strings import check_stop
from engines.protocol import EngineConfig, SamplingParams


def load_delivery(config: EngineConfig) -> Delivery:
    """The delivery of a configuration. Raises ValueError for an unknown one."""
    delivery: Delivery = DELIVERIES.load(config.delivery)
    return delivery


def check_delivery(config: EngineConfig) -> None:
    """Raise ValueError where a part is unknown or a tokenizer is none."""
    DELIVERIES.check(config.delivery)
    REQUEST_STREAMS.check(config.request_streams)
    parse_logprobs(config.logprobs)
    detokenizer = DETOKENIZERS.load(config.detokenizer)
    if detokenizer is not None:
        detokenizer.check(config.tokenizer)


def check_params(request_index: int, params: SamplingParams, config: EngineConfig) -> None:
    """Raise ValueError where a request asks for what can never be."""
    if not 0 <= params.min_tokens <= params.max_tokens:
        raise ValueError(
            f"request {request_index}: min_tokens {params.min_tokens} must be between 0 and "
            f"max_tokens, {params.max_tokens}"
        )
    check_stop(request_index, params, DETOKENIZERS.load(config.detokenizer) is not None)


def delivery_contradiction(config: EngineConfig) -> str:
    """Why what is asked for beside tokens does not go with the rest, or ""."""
    mode: type[OutputProcessing] = OUTPUT_PROCESSING.load(config.output_processing)
    streams = REQUEST_STREAMS.load(config.request_streams)
    if streams is not None and not mode.makes_objects_here:
        modes = OUTPUT_PROCESSING.names()
        others = [each for each in modes if OUTPUT_PROCESSING.load(each).makes_objects_here]
        return (
            f"--axis request-streams={config.request_streams} with --output-processing "
            f"{config.output_processing}: streams are read where the engine is; use "
            f"{', '.join(others)}, or --axis request-streams=none"
        )
    if not load_delivery(config).needs_columns:
        return ""
    for axis, value, name, registry in (
        ("detokenizer", config.detokenizer, config.detokenizer, DETOKENIZERS),
        ("logprobs", config.logprobs, parse_logprobs(config.logprobs).shape, LOGPROBS),
    ):
        part = registry.load(name)
        if part is not None and part.needs_objects:
            kinds = {other: registry.load(other) for other in registry.names()}
            others = [other for other, kind in kinds.items() if not (kind and kind.needs_objects)]
            return (
                f"{config.delivery} delivery with --axis {axis}={value}: it keeps objects for each "
                f"request, and no batch can be taken at once; use {' or '.join(others)}, or "
                "--delivery per_request"
            )
    return ""
