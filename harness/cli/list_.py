"""``gcbench list``: what there is to choose from."""

import ast
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.util import find_spec
from typing import Any

import click

from engines.builtin import registries
from engines.builtin.device.profile import load_profile, shipped_profiles
from engines.model_configs import shipped_models
from engines.nearest import nearest
from engines.registry import ENGINES, Registry
from harness.collector.policy import DESCRIPTIONS
from harness.experiment import experiment_file
from harness.metrics import METRICS
from harness.report.lists import list_table
from harness.report.terminal import make_console
from workloads import catalog

Rows = list[tuple[str, str, str]]

EXAMPLES = """
\b
Examples:
  gcbench list
  gcbench list representations workloads

Kinds: {}.
"""


def _registered(registry: Registry) -> Callable[[], Rows]:
    def rows() -> Rows:
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


def _workloads() -> Rows:
    return [("workload", name, catalog.load(name).reason) for name in catalog.names()]


def _experiments() -> Rows:
    names = experiment_file.names()
    return [("experiment", name, experiment_file.load(name).question) for name in names]


def _profiles() -> Rows:
    return [("device profile", name, load_profile(name).source) for name in shipped_profiles()]


def _models() -> Rows:
    return [("model", name, "A shipped config, without weights.") for name in shipped_models()]


def _policies() -> Rows:
    return [("collector policy", name, words) for name, words in DESCRIPTIONS.items()]


def _metrics() -> Rows:
    return [("metric", m.name, f"{m.definition} [{m.unit}]") for m in METRICS.values()]


_KINDS: dict[str, Callable[[], Rows]] = {
    "workloads": _workloads,
    "experiments": _experiments,
    "engines": _registered(ENGINES),
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


class _Kind(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A kind, or one of it: "wire" is as good as "wires"."""

    name = "KIND"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        for each in (value, f"{value}s", f"{value[:-1]}ies"):
            if each in _KINDS:
                return each
        near = ", ".join(nearest(value, _KINDS))
        raise click.BadParameter(f"no kind {value!r}; did you mean {near}?", ctx, param)


@click.command(name="list", epilog=EXAMPLES.format(", ".join(_KINDS)))
@click.argument("kinds", nargs=-1, type=_Kind(), metavar="[KIND]...")
def list_(kinds: tuple[str, ...]) -> None:
    """List what each axis can be, all of it or of some kinds."""
    rows = [row for kind in kinds or _KINDS for row in _KINDS[kind]()]
    list_table(rows, make_console())
