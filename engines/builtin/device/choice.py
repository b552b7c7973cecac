"""Which device and profile a configuration means."""

from dataclasses import replace

from engines.builtin.device.profile import load_profile
from engines.builtin.registries import DEVICES
from engines.protocol import EngineConfig


def complete_device(config: EngineConfig) -> EngineConfig:
    """Fill in the device, and the profile where it needs one: the model's on an H200."""
    device = config.device or "modelled"
    profile = ""
    if DEVICES.load(device).needs_profile:
        profile = config.device_profile or f"{config.model}-h200"
    return replace(config, device=device, device_profile=profile)


def check_device(config: EngineConfig) -> None:
    """Raise ValueError where there is no such device or profile."""
    if DEVICES.load(config.device).needs_profile:
        load_profile(config.device_profile)
