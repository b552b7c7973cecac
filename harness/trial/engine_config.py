"""The engine that a cell describes, in the engine's own words."""

from dataclasses import replace
from typing import Any, get_type_hints

from engines.protocol import EngineConfig
from engines.vocabulary import read_vocabulary
from harness.axes import AXES, Axis, Cell, Value, values
from workloads.schedule import Schedule

_TYPES = get_type_hints(EngineConfig)


def engine_config(cell: Cell, schedule: Schedule, longest: int = 0) -> EngineConfig:
    """The engine that a cell describes, sized for a schedule and for ``longest`` tokens."""
    tokens_per_step = int(schedule.num_accepted.max())
    # A budget below the batch would leave rows standing in every decode step.
    budget = cell.max_num_batched_tokens or max(8192, cell.batch_size * tokens_per_step)
    vocabulary = read_vocabulary(cell.tokenizer)
    return replace(
        unsized_config(cell),
        max_model_len=cell.max_model_len or max(longest, schedule.max_model_len),
        max_num_batched_tokens=budget,
        seed=schedule.token_seed,
        num_accepted=tuple(schedule.num_accepted.tolist()),
        vocab_size=vocabulary.size,
        eos_token_id=vocabulary.eos_token_id,
        retain_outputs=schedule.retain == "finish",
    )


def unsized_config(cell: Cell) -> EngineConfig:
    """What a cell says of it by itself: no lengths, no tokens.

    Raises ValueError for a switch that is neither off nor on.
    """
    said: dict[str, Any] = {}
    for axis, value in zip(AXES.values(), values(cell).values(), strict=True):
        if axis.decides in _TYPES:
            said[axis.decides] = _switched(axis, value) if _TYPES[axis.decides] is bool else value
        elif axis.decides and value != axis.default:  # these are the engines of another commit
            raise ValueError(f"{axis.said(value)}: the engines of this commit do not know it yet")
    return EngineConfig(**said)


def _switched(axis: Axis, value: Value) -> bool:
    if value not in ("off", "on"):
        raise ValueError(f"{axis.said(value)}: must be off or on")
    return value == "on"
