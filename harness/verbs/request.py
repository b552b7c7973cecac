"""The records that say what is to be measured; their fields are the command line's flags."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from math import inf
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from engines.nearest import nearest
from harness.axes import AXES, Value
from harness.experiment.store import RUNS

TRIAL_SECONDS = 300.0
"""Limit for a trial's preparation, and for its measurement, unless another is given."""


class Flag(NamedTuple):
    """What is said of a field beside its type and default.

    ``help``, ``section``, ``is_main``, ``metavar``: of the command line's help. A number is
    ``above`` one, ``least`` or more, ``most`` at most; a text one of ``choices`` if there are any.
    ``is_axis``: it has no flag of its own, `--axis NAME=VALUE` gives it.
    """

    help: str
    section: str = "Precision"
    is_main: bool = False
    metavar: str = ""
    above: float = -inf
    least: float = -inf
    most: float = inf
    choices: tuple[str, ...] = ()
    is_axis: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError where the value cannot be."""
        if self.choices and value not in (*self.choices, "", None):
            near = ", ".join(nearest(str(value), self.choices))
            raise ValueError(f"{self.said(name, value)}: did you mean {near}?")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return
        if not (value > self.above and self.least <= value <= self.most):
            bounds = [
                *([f"above {self.above:,g}"] if self.above > -inf else []),
                *([f"at least {self.least:,g}"] if self.least > -inf else []),
                *([f"at most {self.most:,.0f}"] if self.most < inf else []),
            ]
            raise ValueError(f"{self.said(name, value)}: must be {' and '.join(bounds)}")

    def said(self, name: str, value: Any) -> str:
        """As the command line has it."""
        name = name.replace("_", "-")
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return f"--axis {name}={text}" if self.is_axis else f"--{name} {text}"


class Field(NamedTuple):
    """A field that has a `Flag`: its ``kind``, without the None of a text that may be missing."""

    name: str
    kind: type
    default: Any
    flag: Flag


class VerbRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a verb is asked for, of the cells of a grid.

    ``axes``: values by axis, which cross; one that is not given is at the verb's default, or at
    its own. Raises ValueError for a value that cannot be.
    """

    defaults: ClassVar[Mapping[str, list[Value]]] = {}
    """Of the verb: the values of axes that are not given."""
    decided: ClassVar[Mapping[str, list[Value]]] = {}
    """Of the verb: axes that nobody can give it."""

    axes: dict[str, list[Value]] = {}

    def __post_init__(self) -> None:
        for field in fields(type(self)):
            field.flag.check(field.name, getattr(self, field.name))
        offered = [name for name in AXES if name not in self.decided]
        if strange := next((axis for axis in self.axes if axis not in offered), ""):
            near = ", ".join(nearest(strange, offered)[:3])
            raise ValueError(f"{strange}: no axis here; did you mean {near}?")

    def values(self, axis: str) -> list[Value]:
        """The values of an axis."""
        if axis in self.decided:
            return list(self.decided[axis])
        return list(self.axes.get(axis) or self.defaults.get(axis, [AXES[axis].default]))

    def value(self, axis: str) -> Value:
        """Its only value. Raises ValueError where there are several."""
        first, *others = self.values(axis)
        if others:
            several = ",".join(map(str, [first, *others]))
            flag = AXES[axis].flag
            raise ValueError(f"{flag} {several}: give one value; gcbench compare takes several")
        return first

    def grid(self) -> dict[str, list[Value]]:
        """The values of every axis, in the order in which they cross."""
        return {axis: self.values(axis) for axis in AXES}


NO_AXES: Mapping[str, list[Value]] = {name: [axis.default] for name, axis in AXES.items()}


@cache
def fields(kind: type[VerbRequest]) -> tuple[Field, ...]:
    """The fields of a record that a caller may give by a flag of that name, as they stand."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in msgspec.structs.fields(kind):
        match get_args(hints[field.name]):
            case (of, Flag() as flag):
                types = get_args(of) if isinstance(of, UnionType) else (get_origin(of) or of,)
                default = field.default
                if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
                    default = field.default_factory()
                kind_ = str if types[0] is Literal else types[0]
                found.append(Field(field.name, kind_, default, flag))
    return tuple(found)


class WorkloadRequest(VerbRequest, frozen=True, kw_only=True):
    """What stands in the place of what a workload says; None and "" leave it as it is."""

    num_requests: Annotated[
        int | None, Flag("How many requests.", section="Workload", is_main=True)
    ] = None
    prompt_lens: Annotated[
        str,
        Flag(
            "Prompt tokens: 48, uniform:LOW:HIGH, …; see docs/workloads.md.",
            section="Workload",
            is_main=True,
            metavar="LENGTHS",
        ),
    ] = ""
    output_lens: Annotated[
        str,
        Flag("Output tokens, the same way.", section="Workload", is_main=True, metavar="LENGTHS"),
    ] = ""
    arrivals: Annotated[
        str,
        Flag(
            "at_once, poisson:RATE, gamma:RATE:BURSTINESS, closed_loop:N, …",
            section="Workload",
            is_axis=True,
        ),
    ] = ""
    tokens_per_step: Annotated[
        str,
        Flag("1, or 1..4, geometric:P:MOST, … for ragged steps.", section="Workload", is_axis=True),
    ] = ""
    priorities: Annotated[
        str,
        Flag(
            "LOW:HIGH, a priority for each request, smaller first.",
            section="Workload",
            is_axis=True,
        ),
    ] = ""
    stop: Annotated[
        list[str],
        Flag("A string that ends an output; may be repeated.", section="Workload", is_axis=True),
    ] = []
    min_tokens: Annotated[
        int | None,
        Flag("Output tokens before anything may end it.", section="Workload", is_axis=True),
    ] = None
    respect_eos: Annotated[
        bool,
        Flag(
            "on: the tokenizer's end-of-sequence token ends an output.",
            section="Workload",
            is_axis=True,
        ),
    ] = False
    retain: Annotated[
        str,
        Flag(
            "step or finish: how long the consumer keeps a request's outputs.",
            section="Workload",
            choices=("step", "finish"),
            is_axis=True,
        ),
    ] = ""
    window: Annotated[
        str,
        Flag("Stretch of a trace, START:DURATION in seconds.", section="Workload", is_axis=True),
    ] = ""
    time_scale: Annotated[
        float | None, Flag("Factor on a trace's gaps.", section="Workload", is_axis=True)
    ] = None
    skip_bad_rows: Annotated[
        bool, Flag("on: count a trace's bad rows only.", section="Workload", is_axis=True)
    ] = False
    seed: Annotated[int, Flag("Seed of everything.")] = 0


class GridRequest(WorkloadRequest, frozen=True, kw_only=True):
    """Trials; ``output``: where they are kept."""

    output: Annotated[Path, Flag("Where raw trials are kept.", section="Output", metavar="DIR")] = (
        RUNS
    )
    trial_timeout: Annotated[
        float,
        Flag(
            "Limit for a trial's preparation, and for its measurement.",
            metavar="SECONDS",
            above=0,
            most=10**6,
        ),
    ] = TRIAL_SECONDS


class TimedRequest(GridRequest, frozen=True, kw_only=True):
    """Trials that are timed, which others' work would spoil."""

    wait: Annotated[
        str,
        Flag(
            "For a quiet machine, at most this long: 90s, 10m, 1h; or no: not even for another "
            "gcbench that measures here.  [default: for that one alone]",
            metavar="TIME|no",
        ),
    ] = ""


class SpreadRequest(TimedRequest, frozen=True, kw_only=True):
    """Trials whose blocks may be dealt out to many machines."""

    cluster: Annotated[
        str,
        Flag(
            "Measure on the nodes of a Ray cluster: HOST:PORT, auto, or local for this machine "
            "(docs/cluster.md).",
            section="Many machines",
            metavar="ADDRESS|local",
        ),
    ] = ""
    leave_out: Annotated[
        str,
        Flag(
            "Nodes of the cluster that measure nothing.",
            section="Many machines",
            metavar="NODE,...",
        ),
    ] = ""
    like: Annotated[
        str,
        Flag(
            "Measure on nodes of this one's machine class.  [default: the class of most]",
            section="Many machines",
            metavar="NODE",
        ),
    ] = ""


_Made = TypeVar("_Made", bound=VerbRequest)


def spelled(name: str) -> str:
    """A field or an axis as the command line has it."""
    return AXES[name].flag if name in AXES else f"--{name.replace('_', '-')}"


def made(kind: type[_Made], given: Mapping[str, Any]) -> _Made:
    """A record of what is given by name, as the command line or a file has it.

    An axis takes a value, several in a list, or a text of several with commas between them.
    Raises ValueError for a name or a value that cannot be.
    """
    known = {field.name: field for field in fields(kind)}
    plain = set(kind.__struct_fields__) - known.keys() - {"axes"}
    offered = AXES.keys() - kind.decided.keys()
    axes: dict[str, list[Value]] = {}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            values[name] = _field(known[name], value)
        elif name in plain:
            values[name] = value
        elif name in offered:
            axes[name] = _axis(name, value)
        else:
            near = ", ".join(nearest(name, [*known, *sorted(offered)])[:3])
            raise ValueError(f"{name}: no such flag or axis here; did you mean {near}?")
    required = (field.name for field in msgspec.structs.fields(kind) if field.required)
    if missing := next((name for name in required if name not in values), ""):
        raise ValueError(f"{spelled(missing) if missing in known else missing}: must be given")
    return kind(**values, axes=axes)


def words(request: VerbRequest, without: Collection[str] = ()) -> list[str]:
    """What the command line says for a record, but for some fields and for positions."""
    said: list[str] = []
    for field in fields(type(request)):
        value = getattr(request, field.name)
        if value == field.default or field.name in without:
            continue
        name = field.name.replace("_", "-")
        for each in value if field.kind is list else [value]:
            if field.flag.is_axis:
                said += ["--axis", f"{name}={'on' if each is True else each}"]
            elif isinstance(each, bool):
                said.append(f"--{name}" if each else f"--no-{name}")
            else:
                said += [f"--{name}", str(each)]
    for axis, values in request.axes.items():
        said += AXES[axis].words(*values) if axis not in without else []
    return said


def _axis(name: str, value: Any) -> list[Value]:
    """Each of the values once."""
    parts = value.split(",") if isinstance(value, str) else _listed(value)
    values = [part.strip() if isinstance(part, str) else part for part in parts]
    try:
        found = [AXES[name].kind(each) for each in values if each != ""]
    except ValueError:
        why = "must be whole numbers separated by commas"
        raise ValueError(f"{AXES[name].said(value)}: {why}") from None
    if not found:
        raise ValueError(f"{AXES[name].flag}: no value given")
    return list(dict.fromkeys(found))


def _listed(value: Any) -> Iterator[Any]:
    return iter(value) if isinstance(value, (list, tuple)) else iter([value])


def _field(field: Field, value: Any) -> Any:
    if value is None or isinstance(value, field.kind if field.kind in (int, str, bool) else ()):
        return value
    if field.kind is bool:
        switched = {"on": True, "off": False}.get(str(value))
        if switched is None:
            raise ValueError(f"{field.flag.said(field.name, value)}: must be on or off")
        return switched
    if field.kind in (int, float):
        try:
            return field.kind(value)
        except (TypeError, ValueError):
            of = "a whole number" if field.kind is int else "a number"
            raise ValueError(f"{field.flag.said(field.name, value)}: must be {of}") from None
    if field.kind in (str, Path):
        return field.kind(value)
    return list(_listed(value))
