"""The engine that ``gcbench serve`` serves: the one that ``gcbench run`` would build."""

from typing import Any

from engines.builtin.delivery.choice import load_delivery
from engines.builtin.model.config import load_model
from engines.protocol import EngineConfig
from harness.axes import AXES, Cell
from harness.collector.policy import parse_policy
from harness.experiment.grid import cross
from harness.trial.engine_config import engine_config
from workloads.recipe.acceptance import parse_acceptance
from workloads.recipe.lengths import parse_lengths
from workloads.workload import Workload


def served_engine(
    axes: dict[str, Any], tokens_per_step: str, seed: int
) -> tuple[Cell, EngineConfig]:
    """What is asked for, as `gcbench run` would build it. Raises ValueError where it cannot be."""
    if several := [AXES[name].flag for name, values in axes.items() if len(values) > 1]:
        raise ValueError(f"{several[0]}: gcbench serve takes one value; gcbench compare several")
    workload = Workload(
        name=str(AXES["workload"].default),
        num_requests=1,
        prompt_lens=parse_lengths("1"),
        output_lens=parse_lengths("1"),
        acceptance=parse_acceptance(tokens_per_step),
    )
    if axes["max_model_len"] == [1]:
        raise ValueError(
            "--max-model-len 1: a request has a token of its prompt and one of its output"
        )
    if axes["max_model_len"] == [0]:
        (model,) = axes["model"]
        axes["max_model_len"] = [load_model(model).config.max_position_embeddings]
    # As far as the engine can tell: its outputs are made in the front end, another process.
    axes["output_processing"] = ["process"]
    schedule = workload.realise(seed)
    (cell,) = cross(axes, {workload.name: schedule}, {workload.name: workload.model}).cells
    if load_delivery(config := engine_config(cell, schedule)).needs_columns:
        raise ValueError(
            f"--delivery {cell.delivery}: makes no output for each request, and each client wants "
            "its own; use per_request or vllm_v1"
        )
    if "on_wait" in parse_policy(cell.gc).for_role("frontend"):
        raise ValueError(
            f"--gc {cell.gc}: the front end waits for no device, so nothing would ever be "
            "collected there; use on_wait@engine"
        )
    return cell, config
