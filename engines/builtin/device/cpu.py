"""A real model on the CPU: small, plain and right; what the GPU's is compared with."""

from typing import TYPE_CHECKING

from engines.builtin.device import Device
from engines.builtin.device.model_checks import check_model
from engines.protocol import EngineConfig

if TYPE_CHECKING:
    from engines.builtin.model import Parallel


class CpuDevice:
    """What is known of it before there is one."""

    needs_profile = False
    has_model = True
    backend = "gloo"
    takes_gpu = False

    @staticmethod
    def check(config: EngineConfig) -> None:
        """Raise ValueError where the model or what is asked of it is impossible."""
        check_model(config)

    @staticmethod
    def build(config: EngineConfig, parallel: "Parallel") -> Device:
        """Its weights are there, its cache is not yet."""
        from engines.builtin.device.cpu_model import CpuModel

        return CpuModel(config, parallel)
