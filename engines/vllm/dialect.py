"""In what the releases of vLLM differ, read off the one that is imported."""

import dataclasses
import inspect
from typing import Any

from vllm.v1.executor.abstract import Executor
from vllm.v1.kv_cache_interface import FullAttentionSpec
from vllm.v1.outputs import LogprobsLists, ModelRunnerOutput

from engines.vllm.settings import NATIVE

DEFERS_SAMPLING = hasattr(Executor, "sample_tokens")
"""Whether a worker answers `execute_model` with None and gives the tokens to `sample_tokens`."""

SCHEDULER_TAKES = (
    "list_of_arrays"
    if "ndarray" in str(ModelRunnerOutput.__annotations__["sampled_token_ids"])
    else "list_of_lists"
)
"""The representation that this release's scheduler reads."""


def representation_of(wanted: str) -> str:
    """The representation that is to cross to the scheduler's side.

    Raises ValueError where the release reads arrays and another is asked for: its scheduler
    would be given arrays made for the purpose, which nobody would do.
    """
    if wanted in (NATIVE, SCHEDULER_TAKES):
        return SCHEDULER_TAKES
    if SCHEDULER_TAKES != "list_of_lists":
        raise ValueError(
            f"this release of vLLM reads {SCHEDULER_TAKES} and cannot be given {wanted}; ask for "
            f"--representation {SCHEDULER_TAKES}, or for a release that reads lists"
        )
    return wanted


_NONE_OF: dict[str, Any] = {
    "spec_token_ids": None,
    "logprobs": None,
    "prompt_logprobs_dict": {},
    "pooler_output": [],
}
_REQUIRED = {
    name: _NONE_OF[name]
    for name, field in ModelRunnerOutput.__dataclass_fields__.items()
    if name in _NONE_OF and field.default is field.default_factory is dataclasses.MISSING
}


def model_runner_output(
    req_ids: list[str], req_id_to_index: dict[str, int], sampled: Any, drawn: Any = None
) -> ModelRunnerOutput:
    """What the scheduler is answered, with nothing in it but tokens and `DeviceLogprobs`."""
    fields = _REQUIRED if drawn is None else _REQUIRED | {"logprobs": _logprobs_lists(drawn)}
    return ModelRunnerOutput(
        req_ids=req_ids, req_id_to_index=req_id_to_index, sampled_token_ids=sampled, **fields
    )


def _logprobs_lists(drawn: Any) -> LogprobsLists:
    """A position a row. Raises ValueError where the release wants lists of Python's."""
    if "ndarray" not in str(LogprobsLists.__annotations__["logprobs"]):
        raise ValueError("--axis logprobs: this release hands them over as lists; leave it out")
    return LogprobsLists(drawn.token_ids[:, 0], drawn.logprobs[:, 0], drawn.ranks[:, 0])


def full_attention_spec(**fields: Any) -> FullAttentionSpec:
    """The KV cache of a layer, of the fields that this release has."""
    return FullAttentionSpec(**_known(fields, inspect.signature(FullAttentionSpec).parameters))


def known_arguments(cls: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a dataclass of this release has."""
    return _known(arguments, {field.name for field in dataclasses.fields(cls)})


def _known(fields: dict[str, Any], names: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name in names}
