"""What is asked for as a file: ``@FILE.toml`` on a command line, and what ``--dry-run`` writes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import tomli_w

from harness.axes import AXES, Value
from harness.cli.sections import SectionCommand
from harness.verbs.request import VerbRequest
from workloads.recipe.spec import read_toml

_Plain = str | bool | int | float
Settings = dict[str, _Plain | list[_Plain]]
"""Values by field or axis."""

_SETTINGS = "gcbench.settings"


class AskedCommand(SectionCommand):
    """A command that asks for a record, by flags and by files of them; a flag wins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the files' names out. Raises ValueError for a file that cannot be read."""
        files = [word for word in args if word.startswith("@") and word.endswith(".toml")]
        ctx.meta[_SETTINGS] = {}
        for word in files:
            ctx.meta[_SETTINGS] |= _read(Path(word[1:]))
        return super().parse_args(ctx, [word for word in args if word not in files])


def settings(ctx: click.Context) -> Settings:
    """What files say that the command line names, by field or axis."""
    found: Settings = ctx.meta.get(_SETTINGS, {})
    return found


def settings_toml(request: VerbRequest, usual: Mapping[str, list[Value]] | None = None) -> str:
    """The file that asks for the same: what is not at its default, and the verb's own axes.

    ``usual``: the values of those as the engines have them; None: as the verb says.
    """
    said: dict[str, Any] = {
        field.name: str(value) if isinstance(value, Path) else value
        for field in msgspec.structs.fields(request)
        if field.name != "axes" and (value := getattr(request, field.name)) != field.default
    }
    own = request.defaults
    if usual:
        own = {
            axis: usual[axis]
            for axis, values in request.defaults.items()
            if usual[axis] == values or usual[axis] != [AXES[axis].default]
        }
    for axis, values in {**own, **request.axes}.items():
        said[axis] = ",".join(map(str, values)) if len(values) > 1 else values[0]
    plain = {name.replace("_", "-"): value for name, value in said.items() if value != []}
    return tomli_w.dumps(plain)


def _read(path: Path) -> Settings:
    found = read_toml(path, dict[str, Any], "experiment")
    for name, value in found.items():
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, (dict, list)) for part in parts):
            raise ValueError(f"{path}: {name}: give a text, a number, true or false, or a list")
    return {name.replace("-", "_"): value for name, value in found.items()}
