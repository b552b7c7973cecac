"""What of a profile is known before anything is measured."""

from pathlib import Path

from engines.builtin.device.hardware import hardware
from engines.builtin.device.profile import DeviceProfile
from engines.builtin.model.config import load_model
from engines.protocol import EngineConfig
from harness.machine.describe import Machine
from harness.report.header import machine_words

LAUNCH = "launch_overhead_seconds"
ATTENTION_RATES = ("attention_bandwidth_bytes_per_second", "attention_flops_per_second")
RATES = ("bandwidth_bytes_per_second", "flops_per_second", LAUNCH, *ATTENTION_RATES)
"""The figures that are fitted, in the order of a profile."""


def sizes(config: EngineConfig, machine: Machine) -> DeviceProfile:
    """A profile of the device's sizes by the model's shape, its rates at 1 and unnamed.

    ``machine`` as `describe` gives it.
    """
    model, runs_on = load_model(config.model).config, hardware(config)
    return DeviceProfile(
        name="",
        model=model_name(config.model),
        accelerator=runs_on.accelerator or machine.cpu_model,
        source="",
        weight_bytes=float(model.num_parameters * runs_on.itemsize),
        kv_bytes_per_token=float(model.kv_bytes_per_token(runs_on.itemsize)),
        flops_per_token=float(model.flops_per_token),
        attention_flops_per_token_pair=float(model.attention_flops_per_token_pair),
        memory_bytes=float(runs_on.memory_bytes),
        machine=machine_words(machine),
        bandwidth_bytes_per_second=1.0,
        flops_per_second=1.0,
        launch_overhead_seconds=0.0,
    )


def base(name: str) -> str:
    """The linear layers' rate that goes with one of attention's, or with itself."""
    return name.removeprefix("attention_")


def model_name(name_or_path: str) -> str:
    """A shipped model's name, or the name of the folder or file that a path leads to."""
    path = Path(name_or_path).expanduser()
    if path.suffix == ".json":
        return path.absolute().parent.name if path.stem == "config" else path.stem
    return path.absolute().name
