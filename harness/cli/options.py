"""The flags that describe a grid, shared by the commands that run one."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from math import nan
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from harness.axes import AXES, Value
from harness.cli.completion import values_of
from harness.cli.sections import SectionOption
from harness.experiment.store import RUNS
from workloads import catalog
from workloads.recipe.acceptance import parse_acceptance
from workloads.recipe.arrivals import parse_arrivals
from workloads.recipe.lengths import parse_lengths
from workloads.recipe.priorities import parse_priorities
from workloads.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])


class CommaList(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """Values separated by commas, each at most once."""

    name = "LIST"

    def __init__(self, kind: type = str, known: Callable[[], Iterable[str]] = tuple) -> None:
        """``known``: names to complete what is typed with."""
        self._kind, self._known = kind, known

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The values; a default is a list already."""
        if isinstance(value, list):
            return value
        try:
            values = [self._kind(part.strip()) for part in str(value).split(",") if part.strip()]
        except ValueError:
            self.fail(f"{value!r} must be whole numbers separated by commas", param, ctx)
        if not values:
            self.fail("no value given", param, ctx)
        return list(dict.fromkeys(values))

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


class Number(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.2 on
    """A finite number, ``above`` one and at most another; NaN is neither."""

    name = "NUMBER"

    def __init__(self, above: float, most: float, *, or_equal: bool = False) -> None:
        self._above, self._most, self._or_equal = above, most, or_equal

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """The number."""
        try:
            number = float(value)
        except ValueError:
            number = nan
        if not (self._above < number <= self._most or (self._or_equal and number == self._above)):
            least = f"{self._above:g} or more" if self._or_equal else f"above {self._above:g}"
            words = f"must be a number, {least} and at most {self._most:,.0f}"
            self.fail(f"{str(value)!r} {words}", param, ctx)
        return number


option = partial(click.option, cls=SectionOption)
"""`click.option` with a ``section`` of the help and, for the main ones, ``is_main``."""

PERCENT = Number(0, 99)
PERCENT_OR_0 = Number(0, 99, or_equal=True)
TRIAL_SECONDS = 300.0
"""Limit for a trial's preparation, and for its measurement, unless another is given."""
SECONDS_OR_0 = Number(0, 10**6, or_equal=True)


def axis_options(
    without: Collection[str] = (), **defaults: list[Value]
) -> Callable[[Command], Command]:
    """Adds a flag for each axis ``without`` some; a command can have defaults of its own."""

    def add(command: Command) -> Command:
        for axis in reversed(AXES.values()):
            if axis.name in without:
                continue
            default = defaults.get(axis.name, [axis.default])
            shown = ",".join(str(value) for value in default if value != "")
            text = f"{axis.help} [default: {shown}]" if shown else axis.help
            kind = CommaList(axis.kind, values_of(axis.name))
            command = option(
                axis.flag,
                type=kind,
                default=default,
                help=text,
                section=axis.section,
                is_main=axis.is_main,
            )(command)
        return command

    return add


def workload_options(command: Command) -> Command:
    """Adds the flags that stand in the place of what a workload says."""
    of_workload = partial(option, section="Workload")
    for add in reversed(
        [
            of_workload("--num-requests", type=int, help="How many requests.", is_main=True),
            of_workload(
                "--prompt-lens",
                help="Prompt tokens: 48, uniform:LOW:HIGH, …; see docs/workloads.md.",
                is_main=True,
            ),
            of_workload("--output-lens", help="Output tokens, the same way.", is_main=True),
            of_workload(
                "--arrivals",
                help="at_once, poisson:RATE, gamma:RATE:BURSTINESS, "
                "closed_loop:N, …; see docs/workloads.md.",
            ),
            of_workload(
                "--tokens-per-step",
                help="1, or 1..4, geometric:P:MOST, … for ragged steps; see docs/workloads.md.",
            ),
            of_workload(
                "--priorities",
                metavar="LOW:HIGH",
                help="A priority for each request, smaller first.",
            ),
            of_workload(
                "--stop",
                multiple=True,
                metavar="TEXT",
                help="A string that ends an output; may be repeated.",
            ),
            of_workload(
                "--min-tokens",
                type=int,
                metavar="N",
                help="Output tokens before anything may end it.",
            ),
            of_workload(
                "--respect-eos",
                is_flag=True,
                help="The tokenizer's end-of-sequence token ends an output.",
            ),
            of_workload(
                "--retain",
                type=click.Choice(["step", "finish"]),
                help="How long the consumer keeps a request's outputs.",
            ),
            of_workload("--window", help="Stretch of a trace, START:DURATION in seconds."),
            of_workload("--time-scale", type=float, help="Factor on a trace's gaps."),
            of_workload("--skip-bad-rows", is_flag=True, help="Count a trace's bad rows only."),
        ]
    ):
        command = add(command)
    return command


def output_option(words: str) -> Callable[[Command], Command]:
    """The flag of the results folder."""
    return option(
        "--output",
        section="Output",
        default=RUNS,
        show_default=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help=words,
    )


seed_option = option(
    "--seed", default=0, show_default=True, help="Seed of everything.", section="Precision"
)
json_option = option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the result there.",
    section="Output",
    is_main=True,
)


def run_options(command: Command) -> Command:
    """Adds the flags that any command with trials has."""
    for add in reversed(
        [
            seed_option,
            json_option,
            output_option("Where raw trials are kept."),
            option(
                "--trial-timeout",
                default=TRIAL_SECONDS,
                show_default=True,
                metavar="SECONDS",
                type=Number(0, 10**6),
                help="Limit for a trial's preparation, and for its measurement.",
                section="Precision",
            ),
            option("--quiet", is_flag=True, help="No progress, no tables.", section="Output"),
        ]
    ):
        command = add(command)
    return command


def cluster_options(command: Command) -> Command:
    """Adds the flags of the commands whose blocks can run on a Ray cluster."""
    for flag, value, words in reversed(
        [
            (
                "--cluster",
                "ADDRESS|local",
                "Measure on the nodes of a Ray cluster: HOST:PORT, "
                "auto, or local for this machine (docs/cluster.md).",
            ),
            ("--leave-out", "NODE,...", "Nodes of the cluster that measure nothing."),
            (
                "--like",
                "NODE",
                "Measure on nodes of this one's machine class.  [default: the class of most]",
            ),
        ]
    ):
        command = option(flag, default="", metavar=value, help=words, section="Many machines")(
            command
        )
    return command


def shard_option(command: Command) -> Command:
    """Adds the flag of the commands whose blocks can be dealt out by hand."""
    words = "Measure only the I-th of N parts; gcbench merge puts them together (docs/cluster.md)."
    return option("--shard", default="", metavar="I/N", help=words, section="Many machines")(
        command
    )


def image_option(command: Command) -> Command:
    """Adds the flag of the commands that draw what they found."""
    words = "Draw the result as a picture: .png or .svg."
    return option(
        "--image", "image_path", metavar="FILE", help=words, section="Output", is_main=True
    )(command)


def wait_quiet_option(command: Command) -> Command:
    """Adds the flags of the commands whose figures another program's work would spoil."""
    words = "Wait for a quiet machine, at most this long: 90s, 10m, 1h."
    return anyway_option(
        option("--wait-quiet", default="", metavar="TIME", help=words, section="Precision")(command)
    )


def anyway_option(command: Command) -> Command:
    """Adds the flag of the commands that wait for others to end their measurements."""
    words = "Do not wait for another gcbench that measures here; say so in the notes."
    return option("--anyway", is_flag=True, help=words, section="Precision")(command)


def refuse_given(ctx: click.Context, but: Collection[str], why: str) -> None:
    """Raise ValueError, with ``why``, for the first flag of the command line but some."""
    for param in ctx.command.params:
        name = param.name or ""
        if name not in but and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ValueError(f"{param.opts[0]}: {why}")


def take_axes(flags: dict[str, Any]) -> dict[str, list[Value]]:
    """Take the axes out of a command's flags, in the order of the grid.

    One that the command has no flag for is at its default.
    """
    return {axis: flags.pop(axis, [each.default]) for axis, each in AXES.items()}


def take_workloads(axes: dict[str, list[Value]], flags: dict[str, Any]) -> list[Workload]:
    """Take the workload flags and make the workloads of the axis, which then has their names.

    A flag that the command does not have changes nothing. Raises ValueError for anything that
    cannot be read.
    """
    parsers: dict[str, Callable[[Any], Any]] = {
        "num_requests": int,
        "prompt_lens": parse_lengths,
        "output_lens": parse_lengths,
        "arrivals": parse_arrivals,
        "tokens_per_step": parse_acceptance,
        "priorities": parse_priorities,
        "min_tokens": int,
        "retain": str,
    }
    given = {name: flags.pop(name, None) for name in parsers}
    changes = {name: parsers[name](value) for name, value in given.items() if value is not None}
    if "tokens_per_step" in changes:
        changes["acceptance"] = changes.pop("tokens_per_step")
    if stop := flags.pop("stop", ()):
        changes["stop"] = stop
    if flags.pop("respect_eos", False):
        changes["ignore_eos"] = False
    trace = _trace_changes(flags)
    workloads = []
    for name in axes["workload"]:
        workload = catalog.load_workload(str(name))
        if trace:
            if workload.trace is None:
                raise ValueError(
                    f"workload {workload.name} is no trace: --window, --time-scale and "
                    "--skip-bad-rows do nothing to it; leave them out"
                )
            changes["trace"] = msgspec.structs.replace(workload.trace, **trace)
        if changes:
            changes["name"] = f"{workload.name} (changed)"
        workloads.append(msgspec.structs.replace(workload, **changes))
    axes["workload"] = [workload.name for workload in workloads]
    return workloads


def _trace_changes(flags: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    window, scale, skip = (
        flags.pop(name, None) for name in ("window", "time_scale", "skip_bad_rows")
    )
    if window is not None:
        try:
            start, duration = (float(part) for part in window.split(":"))
        except ValueError:
            raise ValueError(f"--window {window}: must be START:DURATION in seconds") from None
        changes |= {"start_seconds": start, "duration_seconds": duration}
    if scale is not None:
        changes["time_scale"] = scale
    if skip:
        changes["skip_bad_rows"] = True
    return changes
