"""A real model on a GPU: graphs for decoding, Triton kernels, at the speed of the memory."""

from typing import TYPE_CHECKING

from engines.builtin.device import Device
from engines.builtin.device.model_checks import check_model
from engines.protocol import EngineConfig

if TYPE_CHECKING:
    from engines.builtin.model import Parallel

_MOST_ROWS = 65_535
"""Blocks in the second and third dimension of a CUDA grid, where requests and sampled rows are."""


class CudaDevice:
    """What is known of it before there is one."""

    needs_profile = False
    has_model = True
    backend = "nccl"
    takes_gpu = True

    @staticmethod
    def check(config: EngineConfig) -> None:
        """Raise ValueError where there is no GPU, or the model or what is asked is impossible."""
        check_model(config)
        width = max(config.num_accepted)
        if config.max_num_seqs * width > _MOST_ROWS:
            drafts = f" with {width} tokens a step each" if width > 1 else ""
            raise ValueError(
                f"batch size {config.max_num_seqs:,}{drafts}: a grid of the kernels has "
                f"{_MOST_ROWS:,} rows at most; take a smaller --batch-size"
            )
        import torch

        found = torch.cuda.device_count()
        if not found:
            raise ValueError(
                "--device cuda: torch finds no CUDA device here; use --device modelled, null or cpu"
            )
        if config.tensor_parallel_size > found:
            raise ValueError(
                f"--axis tensor-parallel={config.tensor_parallel_size}: there are {found} CUDA "
                "devices"
            )

    @staticmethod
    def build(config: EngineConfig, parallel: "Parallel") -> Device:
        """Its weights are there, its cache is not yet. Raises ValueError where memory is short."""
        from engines.builtin.device.cuda_model import CudaModel

        return CudaModel(config, parallel)
