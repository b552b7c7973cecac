"""What there is to choose from, by kind: each by its name and what it says of itself."""

import ast
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.util import find_spec

from engines.builtin import registries
from engines.builtin.device.profile import load_profile, shipped_profiles
from engines.model_configs import shipped_models
from engines.nearest import nearest
from engines.registry import ENGINES, Registry
from harness.axes import AXES, Axis
from harness.collector.policy import DESCRIPTIONS
from harness.experiment import experiment_file
from harness.metrics import METRICS
from harness.verbs.request import WorkloadRequest, fields
from workloads import catalog

ChoiceRows = list[tuple[str, str, str]]
"""(kind, name, what it is), for `list_table`."""


def choices(kind: str | None = None, name: str | None = None) -> ChoiceRows:
    """Of a kind (a key of `CHOICES`), or of all; only the one of a name where one is given.

    Raises ValueError where there is none of that name.
    """
    rows = [row for each in ([kind] if kind else CHOICES) for row in CHOICES[each]()]
    found = [row for row in rows if name in (None, row[1])]
    if name is not None and not found:
        near = ", ".join(nearest(name, [row[1] for row in rows]))
        raise ValueError(f"none of the {kind} is {name!r}; did you mean {near}?")
    return found


def _registered(registry: Registry) -> Callable[[], ChoiceRows]:
    def rows() -> ChoiceRows:
        return [(registry.kind, name, _first_line(registry, name)) for name in registry.names()]

    return rows


def _first_line(registry: Registry, name: str) -> str:
    """What the module of an implementation says of itself, which may take torch to import."""
    module = registry.check(name).split(":")[0]
    try:
        if (spec := find_spec(module)) is None:
            return f"{module} is not there"
        source = spec.loader.get_source(module) if isinstance(spec.loader, InspectLoader) else None
        words = ast.get_docstring(ast.parse(source or "")) or ""
    except (ImportError, SyntaxError) as error:
        return f"{module} cannot be read: {error}"
    return words.partition("\n")[0]


def _engines() -> ChoiceRows:
    return [
        (kind, name, f"{words} {_shapes(name)}") for kind, name, words in _registered(ENGINES)()
    ]


def _shapes(name: str) -> str:
    """What --representation can be for an engine, in a sentence, or why there is none."""
    try:
        own = ENGINES.load(name).own_values.get("representation")
    except ValueError as error:
        return f"Broken: {error}."
    if own is None:
        return "Representations: gcbench list representations."
    return f"Representations: {', '.join(own) or 'none, it has one shape of its own'}."


def _workloads() -> ChoiceRows:
    return [
        ("workload", name, catalog.load_workload(name).reason) for name in catalog.workload_names()
    ]


def _experiments() -> ChoiceRows:
    names = experiment_file.experiment_names()
    return [
        ("experiment", name, experiment_file.load_experiment_file(name).question) for name in names
    ]


def _profiles() -> ChoiceRows:
    return [("device profile", name, load_profile(name).source) for name in shipped_profiles()]


def _models() -> ChoiceRows:
    return [("model", name, "A shipped config, without weights.") for name in shipped_models()]


def _policies() -> ChoiceRows:
    return [("collector policy", name, words) for name, words in DESCRIPTIONS.items()]


def _metrics() -> ChoiceRows:
    return [("metric", m.name, f"{m.definition} [{m.unit}]") for m in METRICS.values()]


def _axes() -> ChoiceRows:
    """With the fields that stand in the place of what a workload says."""
    of_workload = [
        ("axis", each.name.replace("_", "-"), f"{each.flag.help} Of the workload: one value.")
        for each in fields(WorkloadRequest)
        if each.flag.is_axis
    ]
    return [
        ("axis", name.replace("_", "-"), _of_axis(axis)) for name, axis in AXES.items()
    ] + of_workload


def _of_axis(axis: Axis) -> str:
    default = f"  [default: {axis.default}]" if axis.default != "" else ""
    return f"{axis.help}{default}"


CHOICES: dict[str, Callable[[], ChoiceRows]] = {
    "axes": _axes,
    "workloads": _workloads,
    "experiments": _experiments,
    "engines": _engines,
    "devices": _registered(registries.DEVICES),
    "models": _models,
    "profiles": _profiles,
    "representations": _registered(registries.REPRESENTATIONS),
    "deliveries": _registered(registries.DELIVERIES),
    "policies": _policies,
    "scheduling-policies": _registered(registries.SCHEDULING_POLICIES),
    "detokenizers": _registered(registries.DETOKENIZERS),
    "logprobs": _registered(registries.LOGPROBS),
    "request-streams": _registered(registries.REQUEST_STREAMS),
    "workers": _registered(registries.WORKERS),
    "wires": _registered(registries.WIRES),
    "transports": _registered(registries.TRANSPORTS),
    "metrics": _metrics,
}
