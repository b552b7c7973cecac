"""Which device and profile a configuration means, and what the device's model decides."""

from dataclasses import replace

from engines.builtin.device import DeviceClass
from engines.builtin.model.config import load_model
from engines.builtin.registries import DEVICES
from engines.protocol import EngineConfig

_ANY_VOCAB_SIZE = 50257


def complete_device(config: EngineConfig) -> EngineConfig:
    """Fill in the device, and where it needs one the profile: the model as measured on an H200."""
    device = config.device or "modelled"
    profile = ""
    if DEVICES.load(device).needs_profile:
        profile = config.device_profile or f"{config.model}-h200-measured"
    return replace(config, device=device, device_profile=profile)


def prompt_vocab_size(config: EngineConfig) -> int:
    """Token ids of a prompt are below it: the model's, GPT-2's where there is none."""
    if not device_class(config).has_model:
        return _ANY_VOCAB_SIZE
    return min(_ANY_VOCAB_SIZE, load_model(config.model).config.vocab_size)


def eos_token_ids(config: EngineConfig) -> tuple[int, ...]:
    """What ends a text: with a model its own, as in vLLM; else the tokenizer's, if it has one."""
    if device_class(config).has_model:
        return load_model(config.model).config.eos_token_ids
    return () if config.eos_token_id < 0 else (config.eos_token_id,)


def device_class(config: EngineConfig) -> DeviceClass:
    """The device's class. Raises ValueError for an unknown one."""
    found: DeviceClass = DEVICES.load(config.device)
    return found
