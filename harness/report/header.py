"""What stands above an experiment's tables: machine, workload, device, and what all cells share."""

from harness import format as fmt
from harness.axes import worth_mentioning
from harness.experiment.result import ExperimentResult
from harness.machine.describe import GIB, Machine
from harness.render.report import known
from harness.report.power import settles_nothing, surroundings_words

INCOMPLETE = "interrupted before everything was measured: figures of the trials that had ended"

_DEVICES = {
    "modelled": "modelled: a wait of modelled length stands for the accelerator; the host path is "
    "the real one",
    "cpu": "cpu: a real model on the CPU, computed when it is waited for",
    "cuda": "cuda: a real model on the GPU",
    "null": "null: a forward pass of zero length, the host path alone",
}


def header(result: ExperimentResult) -> list[tuple[str, str]]:
    """How far the figures go, and what holds for all cells, as (label, words)."""
    surroundings = result.surroundings
    lines = [
        ("incomplete", "" if result.is_complete else INCOMPLETE),
        ("attention", settles_nothing(result)),
        ("surroundings", surroundings_words(surroundings)),
    ]
    return [*known(lines), *facts(result)]


def facts(result: ExperimentResult) -> list[tuple[str, str]]:
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
        ("nodes", _nodes_words(result)),
        ("interpreter", _interpreter_words(result)),
        ("workload", _workload_words(result)),
        ("device", "; ".join(_DEVICES.get(device, device) for device in devices)),
        ("device profile", str(profile)),
        ("all cells", ", ".join(f"{axis} {_axis(value)}" for axis, value in shared.items())),
        ("cells vary in", ", ".join(varying)),
        ("measured", _measured_words(result)),
        ("code", ", ".join(result.code_commits)),
    ]
    return known(lines)


def varying_axes(result: ExperimentResult) -> list[str]:
    """The axes in which the cells, failed ones included, differ."""
    points = [cell.axes for cell in result.cells]
    points += [
        {axis: getattr(failure.cell, axis) for axis in failure.cell.__struct_fields__}
        for failure in result.failures
    ]
    axes = dict.fromkeys(axis for point in points for axis in point)
    return [axis for axis in axes if len({point[axis] for point in points if axis in point}) > 1]


def machine_words(machine: Machine) -> str:
    """A machine in a line; parts that are not known are left out."""
    parts = [
        machine.cpu_model,
        f"{machine.cores_usable} cores" if machine.cores_usable else "",
        f"{machine.memory_bytes / GIB:.1f} GiB" if machine.memory_bytes else "",
        *machine.gpus,
        machine.kernel,
        f"in a {machine.virtualization}" if machine.virtualization else "",
    ]
    return ", ".join(part for part in parts if part)


def _nodes_words(result: ExperimentResult) -> str:
    """How many blocks each of several machines has measured."""
    shares = [f"{node} {blocks}" for node, blocks in result.nodes.items()]
    return f"blocks of {', '.join(shares)}" if shares else ""


def _interpreter_words(result: ExperimentResult) -> str:
    """The versions of this process, which are the trials' own unless they chose an interpreter."""
    if any(cell.axes.get("python") for cell in result.cells):
        return ""
    machine = result.machine
    versions = (("Python", machine.python), ("torch", machine.torch), ("NumPy", machine.numpy))
    return ", ".join(f"{name} {version}" for name, version in versions if version)


def _workload_words(result: ExperimentResult) -> str:
    return "; ".join(
        f"{each.name}, hash {each.hash[:12]}, {fmt.count(each.num_requests)} requests"
        for each in result.workloads
    )


def _measured_words(result: ExperimentResult) -> str:
    rounds = {cell.samples for cell in result.cells} or {0}
    spread = f"{min(rounds)} to {max(rounds)}" if len(rounds) > 1 else f"{max(rounds)}"
    decides = f"{', '.join(result.decide)} decide{'s' if len(result.decide) < 2 else ''}"
    return (
        f"{spread} rounds, seed {result.seed}; {decides}, tolerance {fmt.percent(result.tolerance)}"
    )


def _axis(value: str | int) -> str:
    return fmt.count(value) if isinstance(value, int) else value
