"""A model of nothing: the host path asks for its class and its size, and never for its layers."""

from typing import Any

import torch

MODEL_CLASS = "LlamaForCausalLM"
"""A name that no release decides a branch by."""


class NoModel(torch.nn.Module):
    """What SGLang's loader wants of a model, without a weight."""

    def __init__(self, config: Any, quant_config: Any = None, prefix: str = "") -> None:
        super().__init__()
        self.config = config

    def forward(self, *_: Any) -> None:
        """Never called: `ScriptedRunner` answers."""
        raise NotImplementedError


def register_no_model() -> None:
    """Have SGLang find it in the place of one of its own models."""
    from sglang.srt.models.registry import ModelRegistry

    ModelRegistry.models[MODEL_CLASS] = NoModel
