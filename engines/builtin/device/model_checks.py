"""What every device with a model checks of a configuration, without importing torch."""

from engines.builtin.block_pool import check_room
from engines.builtin.model.config import load_model
from engines.builtin.model.sampling import parse_sampling
from engines.protocol import EngineConfig

DTYPES = ("auto", "float32", "bfloat16", "float16")


def check_model(config: EngineConfig) -> None:
    """Raise ValueError where there is no such model, or it cannot take such requests."""
    model = load_model(config.model).config
    if config.max_model_len > model.max_position_embeddings:
        raise ValueError(
            f"requests of up to {config.max_model_len} tokens: {config.model} has positions for "
            f"{model.max_position_embeddings}; ask for shorter ones or another --axis model"
        )
    if config.num_gpu_blocks_override:
        check_room(config.num_gpu_blocks_override, config)
    if config.dtype not in DTYPES:
        raise ValueError(f"--axis dtype={config.dtype}: must be one of {', '.join(DTYPES)}")
    parse_sampling(config.sampling)
    model.check_tensor_parallel(config.tensor_parallel_size)
