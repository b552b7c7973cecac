"""A model with a name and no layers: vLLM asks a class what kind of model it is, and no more."""

from typing import Any, ClassVar

import torch

ARCHITECTURE = "HostPathForCausalLM"


class HostPathForCausalLM(torch.nn.Module):
    """Answers as a text-generation model; never built, for the worker loads none.

    Named by the classes of ``vllm.model_executor.models.interfaces_base``, whose older and
    newer names for the embedding both stand here. Whether it takes adapters it is asked too.
    """

    supports_lora = True
    packed_modules_mapping: ClassVar[dict[str, list[str]]] = {}
    embedding_modules: ClassVar[dict[str, str]] = {}

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        raise NotImplementedError("the host path has no model")

    def embed_input_ids(self, input_ids: torch.Tensor) -> torch.Tensor:
        """There is none."""
        raise NotImplementedError

    get_input_embeddings = embed_input_ids

    def forward(self, input_ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """There is none."""
        raise NotImplementedError

    def compute_logits(self, hidden_states: torch.Tensor, **_: Any) -> torch.Tensor:
        """There is none."""
        raise NotImplementedError


def register() -> None:
    """Make it known to vLLM: a class, so that no process has to be started to inspect it."""
    from vllm.model_executor.models import ModelRegistry

    if ARCHITECTURE not in ModelRegistry.get_supported_archs():
        ModelRegistry.register_model(ARCHITECTURE, HostPathForCausalLM)
