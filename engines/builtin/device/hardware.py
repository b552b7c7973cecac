"""What a device with a model runs on; asked for before there is one."""

from typing import NamedTuple

import psutil

from engines.builtin.model.config import dtype_name, load_model
from engines.protocol import EngineConfig

_ITEMSIZES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Hardware(NamedTuple):
    """``accelerator``: "" where the machine's own processor is it; ``itemsize``: bytes of a weight
    and of a key's or value's element.
    """

    accelerator: str
    memory_bytes: int
    itemsize: int


def hardware(config: EngineConfig) -> Hardware:
    """That of ``--device cpu`` or ``cuda``, with the type that "auto" means there."""
    itemsize = _ITEMSIZES[dtype_name(config.dtype, load_model(config.model).config, config.device)]
    if config.device == "cpu":
        return Hardware("", psutil.virtual_memory().total, itemsize)
    import torch

    properties = torch.cuda.get_device_properties(0)
    return Hardware(properties.name, properties.total_memory, itemsize)
