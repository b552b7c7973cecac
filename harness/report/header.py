"""What stands above an experiment's tables: machine, workload, device, and what all cells share."""

from typing import Any

from harness import format as fmt
from harness.axes import worth_mentioning
from harness.experiment.result import ExperimentResult
from harness.machine.describe import GIB

_DEVICES = {
    "modelled": "modelled: a wait of modelled length stands for the accelerator; the host path is "
    "the real one",
    "cpu": "cpu: a real model on the CPU, computed when it is waited for",
    "cuda": "cuda: a real model on the GPU",
    "null": "null: a forward pass of zero length, the host path alone",
}


def header(result: ExperimentResult) -> list[tuple[str, str]]:
    """What holds for all cells, as (label, words)."""
    varying = varying_axes(result)
    first = result.cells[0].axes if result.cells else {}
    shared = {axis: v for axis, v in worth_mentioning(first).items() if axis not in varying}
    profile = shared.pop("device_profile", "")
    devices = dict.fromkeys(str(cell.axes.get("device", "")) for cell in result.cells)
    for said_elsewhere in ("device", "workload"):
        shared.pop(said_elsewhere, None)
    lines = [
        ("experiment", result.name),
        ("machine", machine_words(result.machine)),
        ("interpreter", _interpreter_words(result)),
        ("workload", _workload_words(result)),
        ("device", "; ".join(_DEVICES.get(device, device) for device in devices)),
        ("device profile", str(profile)),
        ("all cells", ", ".join(f"{axis} {_axis(value)}" for axis, value in shared.items())),
        ("cells vary in", ", ".join(varying)),
        ("measured", _measured_words(result)),
        ("code", result.code_commit),
        ("command", result.command),
    ]
    return [(label, words) for label, words in lines if words]


def varying_axes(result: ExperimentResult) -> list[str]:
    """The axes in which the cells, failed ones included, differ."""
    points = [cell.axes for cell in result.cells]
    points += [{axis: getattr(failure.cell, axis) for axis in failure.cell.__struct_fields__}
               for failure in result.failures]  # fmt: skip
    axes = dict.fromkeys(axis for point in points for axis in point)
    return [axis for axis in axes if len({point[axis] for point in points if axis in point}) > 1]


def machine_words(machine: dict[str, Any]) -> str:
    """A machine in a line; parts that are not known are left out."""
    memory, virtualization = machine.get("memory_bytes"), machine.get("virtualization")
    parts = [
        str(machine.get("cpu_model", "")),
        f"{machine['cores_usable']} cores" if "cores_usable" in machine else "",
        f"{memory / GIB:.1f} GiB" if memory else "",
        *machine.get("gpus", []),
        str(machine.get("kernel", "")),
        f"in a {virtualization}" if virtualization else "",
    ]
    return ", ".join(part for part in parts if part)


def _interpreter_words(result: ExperimentResult) -> str:
    """The versions of this process, which are the trials' own unless they chose an interpreter."""
    if any(cell.axes.get("python") for cell in result.cells):
        return ""
    names = (("Python", "python"), ("torch", "torch"), ("NumPy", "numpy"))
    return ", ".join(f"{n} {result.machine[key]}" for n, key in names if result.machine.get(key))


def _workload_words(result: ExperimentResult) -> str:
    workload = result.workload
    words = f"{workload.get('name', '?')}, hash {str(workload.get('hash', '?'))[:12]}"
    if "num_requests" in workload:
        words += f", {fmt.count(workload['num_requests'])} requests"
    return words


def _measured_words(result: ExperimentResult) -> str:
    rounds = {cell.samples for cell in result.cells} or {0}
    spread = f"{min(rounds)} to {max(rounds)}" if len(rounds) > 1 else f"{max(rounds)}"
    seed = f", seed {result.workload['seed']}" if "seed" in result.workload else ""
    return (
        f"{spread} rounds{seed}; {result.decide} decides, tolerance {fmt.percent(result.tolerance)}"
    )


def _axis(value: str | int) -> str:
    return fmt.count(value) if isinstance(value, int) else value
