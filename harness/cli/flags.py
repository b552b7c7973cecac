"""The flags of a command, made from the record that says what it can be asked for."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from harness.axes import AXES, Axis
from harness.cli.completion import values_of
from harness.cli.sections import SectionOption
from harness.cli.settings import settings
from harness.verbs.request import Field, VerbRequest, fields, made, spelled

Command = TypeVar("Command", bound=Callable[..., Any])
_Asked = TypeVar("_Asked", bound=VerbRequest)

option = partial(click.option, cls=SectionOption)
"""`click.option` with a ``section`` of the help and, for the main ones, ``is_main``."""

_METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}


class ValueList(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """Values with commas between them, read when the record is made."""

    name = "LIST"

    def __init__(self, known: Callable[[], Iterable[str]] = tuple) -> None:
        """``known``: names to complete what is typed with."""
        self._known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The known names that the last value of the list begins."""
        before, comma, begun = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self._known()
            if name.startswith(begun)
        ]


class _AxisAndValues(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """NAME=VALUE,..., taken apart by `given`."""

    name = "AXIS"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that are begun, or the values of one."""
        name, equals, values = incomplete.partition("=")
        if not equals:
            names = (axis.replace("_", "-") for axis in AXES)
            return [CompletionItem(f"{each}=") for each in names if each.startswith(name)]
        known = ValueList(values_of(name.replace("-", "_")))
        items = known.shell_complete(ctx, param, values)
        return [CompletionItem(f"{name}={item.value}") for item in items]


def request_options(kind: type[VerbRequest]) -> Callable[[Command], Command]:
    """Adds a flag for each field of a record, and for its main axes.

    The others are given by ``--axis``, as are the fields that have no flag of their own.
    """

    def add(command: Command) -> Command:
        named = fields(kind)
        for field in reversed(named):
            if not field.flag.is_axis:
                command = _of_field(field)(command)
        offered = [each for each in AXES.values() if each.name not in kind.decided]
        if any(each.flag.is_axis for each in named) or not all(each.is_main for each in offered):
            command = _axis_option(command)
        for axis in reversed([each for each in offered if each.is_main]):
            command = _of_axis(axis, kind)(command)
        return command

    return add


def _axis_option(command: Command) -> Command:
    return option(
        "--axis",
        "axis",
        type=_AxisAndValues(),
        multiple=True,
        metavar="NAME=VALUE,...",
        help="Any other axis, or a field of the workload; may be repeated (`gcbench list axes`).",
        section="What to compare",
        is_main=True,
    )(command)


def _of_axis(axis: Axis, kind: type[VerbRequest]) -> Callable[[Command], Command]:
    default = kind.defaults.get(axis.name, [axis.default])
    shown = ",".join(str(value) for value in default if value != "")
    return option(
        axis.flag,
        type=ValueList(values_of(axis.name)),
        metavar="LIST",
        help=f"{axis.help} [default: {shown}]" if shown else axis.help,
        section=axis.section,
        is_main=True,
    )


def _of_field(field: Field) -> Callable[[Command], Command]:
    flag, name = field.flag, f"--{field.name.replace('_', '-')}"
    make = partial(option, section=flag.section, is_main=flag.is_main)
    if field.kind is bool:
        both = f"{name}/--no-{name[2:]}" if field.default else name
        return make(both, is_flag=True, help=flag.help)
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    is_said = "[default" in flag.help or field.default in (msgspec.NODEFAULT, None, "", [])
    return make(
        name,
        type=click.Choice(flag.choices) if flag.choices else str,
        help=flag.help if is_said else f"{flag.help}  [default: {default}]",
        metavar=flag.metavar or _METAVARS[field.kind],
        multiple=field.kind is list,
    )


def given(ctx: click.Context, kind: type[VerbRequest]) -> dict[str, Any]:
    """What the command line or its files say that a record takes, by name, and all ``--axis``.

    Raises ValueError where that is no NAME=VALUE, or what it says is said or decided already.
    """
    own = {*kind.__struct_fields__, *(AXES.keys() - kind.decided.keys())}
    found = {
        name: value
        for name, value in ctx.params.items()
        if name in own and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    repeated: dict[str, list[str]] = {}
    for word in ctx.params.get("axis", ()):
        name, _, value = word.partition("=")
        if not (name and value):
            why = "must be NAME=VALUE, with at least one character of each"
            raise ValueError(f"--axis {word}: {why}")
        repeated.setdefault(name.strip().replace("-", "_"), []).append(value)
    for name, values in repeated.items():
        if name in found or (len(values) > 1 and name in AXES):
            raise ValueError(f"--axis {name}: given twice; leave one out")
        found[name] = values if len(values) > 1 else values[0]
    found = settings(ctx) | found
    for axis in filter(None, map(AXES.get, found)):
        others = [name for name in axis.overrules if name in found]
        listed = found[axis.name]
        listed = listed if isinstance(listed, list) else str(listed).split(",")
        if others and axis.default not in listed:
            raise ValueError(f"{AXES[others[0]].flag}: {axis.said(*listed)} decides; leave it out")
    return found


def asked(kind: type[_Asked], ctx: click.Context, **more: Any) -> _Asked:
    """The record that the command line asks for."""
    return made(kind, given(ctx, kind) | more)


def refuse_given(ctx: click.Context, but: Collection[str], why: str) -> None:
    """Raise ValueError, with ``why``, for the first thing that is asked for but some."""
    if name := next(iter(settings(ctx)), ""):
        raise ValueError(f"{spelled(name)}: {why}")
    for param in ctx.command.params:
        name = param.name or ""
        if name not in but and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ValueError(f"{param.opts[0]}: {why}")
