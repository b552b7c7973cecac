"""The command line's top: commands by name, errors as one sentence, exit codes."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import click

from harness.cli.exit_codes import MEANINGS, ExitCode
from harness.cli.say import say
from harness.cli.streams import OutputError, standard_streams
from harness.cut_bytecode import cut_bytecode
from harness.machine.interrupts import interrupts_raise
from harness.missing_package import missing_package
from harness.probed.forwarded import held_back


class _Command(NamedTuple):
    """Where a command is, and its line in ``gcbench --help``."""

    target: str
    summary: str


HEADINGS = {
    "Compare": {
        "compare": _Command(
            "harness.cli.compare:compare", "Compare the cells of a grid of choices."
        ),
        "run": _Command("harness.cli.run:run", "Run one cell once and show all that was measured."),
        "releases": _Command(
            "harness.cli.releases:releases", "Measure an engine's host path release by release."
        ),
        "advise": _Command(
            "harness.cli.advise:advise",
            "Find the best collector settings; predict how often it runs, and where it matters.",
        ),
    },
    "Explain": {
        "explain": _Command(
            "harness.cli.explain:explain",
            "Say which lines a step's cost is made of, or make the collector run.",
        )
    },
    "Watch": {
        "gate": _Command("harness.cli.gate:gate", "Measure one commit against another."),
        "bisect": _Command(
            "harness.cli.bisect:bisect", "Find the commit with which an exact metric moved."
        ),
        "nightly": _Command(
            "harness.cli.nightly:nightly", "Measure the commits that have no results yet."
        ),
        "dashboard": _Command(
            "harness.cli.dashboard:dashboard", "Make a static site of what was measured."
        ),
    },
    "Live": {
        "serve": _Command(
            "harness.cli.serve:serve",
            "Serve the built-in engine as vLLM serves a model, over HTTP.",
        ),
        "load": _Command("harness.cli.load:load", "Put a server under load and measure it."),
        "probe": _Command(
            "harness.cli.probe:probe",
            "Say which processes of any Python program the collector stops.",
        ),
    },
    "Look": {
        "report": _Command(
            "harness.cli.report:report",
            "Show a stored run again, or what changed in results across commits.",
        ),
        "list": _Command("harness.cli.list_:list_", "List what each axis can be; show a workload."),
        "doctor": _Command(
            "harness.cli.doctor:doctor",
            "Look for what would spoil a measurement; measure the noise.",
        ),
    },
}
"""The commands as ``gcbench --help`` groups them."""

COMMANDS = {name: each for group in HEADINGS.values() for name, each in group.items()}

_GONE = {
    "attach": "gcbench probe --pid PID attaches, from CPython 3.14 on",
    "cadence": "gcbench advise --predict predicts how often the collector runs",
    "calibrate": "python -m benchmarks.calibrate writes a profile, in a checkout of gcbench",
    "crossover": "gcbench advise --models says for which models and batches the host path matters",
    "diff": "gcbench report RUN --against RUN compares them",
    "history": "gcbench report RESULTS says what changed, of a folder of asv's results too",
    "http": "gcbench load --http-cost measures what HTTP adds",
    "merge": "gcbench report --merge RUN RUN puts shards together",
    "noise": "gcbench doctor --noise measures it",
    "reproduce": "python -m benchmarks.claims measures claims again, in a checkout of gcbench",
    "sites": "gcbench explain --by collections names the lines",
    "workload": "gcbench list workloads NAME shows one, and exports it with --mooncake FILE",
}
"""What became of a command, by its name."""


class _HiddenFromClick(Exception):  # noqa: N818
    """An exception that click would take for a reader that has left, or for Ctrl-D."""

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause


class _Commands(click.Group):
    """Imports a command when it is run, and none to say which there are."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from importlib import import_module

        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        module, attribute = found.target.split(":")
        with held_back():  # NumPy begins threads, which would take what is for `gcbench probe`
            command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for heading, commands in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(f"{name:{width}}", each.summary) for name, each in commands.items()]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, EOFError) as error:
            raise _HiddenFromClick(error) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from engines.nearest import nearest

        if args and (where := _GONE.get(args[0])):
            raise click.UsageError(f"no command {args[0]!r} any more: {where}")
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = ", ".join(nearest(args[0], COMMANDS))
            raise click.UsageError(f"no command {args[0]!r}; did you mean {near}?")
        if flag := _without_value(args):
            raise click.UsageError(
                f"{flag}: an empty value; give at least one character, or leave the flag out"
            )
        return super().resolve_command(ctx, args)


def _without_value(args: list[str]) -> str:
    """The first flag whose value is "", as an unset variable of a shell leaves it; "" for none.

    What stands behind ``--`` is none of ours.
    """
    args = args[: args.index("--")] if "--" in args else args
    for flag, value in zip(["", *args], args, strict=False):
        if value == "" and flag.startswith("--"):
            return flag
        if value.startswith("--") and value.endswith("=") and value.count("=") == 1:
            return value[:-1]
    return ""


@click.group(cls=_Commands, context_settings={"max_content_width": 100})
@click.version_option(package_name="gcbench")
def cli() -> None:
    """Measure what output-token representations and garbage-collector settings cost an engine."""


def main(
    arguments: list[str] | None = None, executors: Callable[[float], Any] | None = None
) -> int:
    """Run the command line; the exit status, an `ExitCode`.

    ``executors`` makes the `Executor` of all trials, given the seconds after which one is given
    up; None: this machine.
    """
    with standard_streams(), interrupts_raise():
        try:
            try:
                return _run(arguments, executors)
            finally:
                sys.stdout.flush()
        except OutputError as error:
            if isinstance(error.__cause__, BrokenPipeError):
                return ExitCode.READER_LEFT
            return _say(f"standard output cannot be written: {error}", ExitCode.OUTPUT_FAILED)


def _run(arguments: list[str] | None, executors: Callable[[float], Any] | None) -> int:
    try:
        status = cli.main(arguments, prog_name="gcbench", standalone_mode=False, obj=executors)
    except OutputError:
        raise
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return ExitCode.WRONG_USAGE
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except _HiddenFromClick as hidden:
        return _say(*_explanation(hidden.cause))
    except Exception as error:
        return _say(*_explanation(error))
    return status if isinstance(status, int) else ExitCode.MEASURED


def _explanation(error: Exception) -> tuple[str, ExitCode]:
    if isinstance(error, click.ClickException):
        return _usage_words(error), ExitCode.WRONG_USAGE
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}", ExitCode.WRONG_USAGE
    if isinstance(error, (EOFError, ImportError, MemoryError)):
        sentence = missing_package(error) or cut_bytecode(error)
        return (sentence, ExitCode.WRONG_USAGE) if sentence else _internal_error(error)
    # Imported only now: with too little memory these imports would be the next to fail.
    from engines.protocol import EngineDeadError
    from harness.experiment.ray.error import ClusterError
    from harness.files import StoreError
    from harness.machine.other_work import BusyMachineError
    from harness.trial.callgrind import CallgrindError

    if isinstance(error, (EngineDeadError, BusyMachineError, ClusterError, CallgrindError)):
        return str(error), ExitCode.NOT_MEASURED
    if isinstance(error, (ValueError, StoreError)):
        return str(error), ExitCode.WRONG_USAGE
    return _internal_error(error)


def _usage_words(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        from harness.axes import AXES
        from harness.verbs.request import WorkloadRequest, fields

        name = error.option_name.lstrip("-")
        by_axis = {each.name for each in fields(WorkloadRequest) if each.flag.is_axis} | AXES.keys()
        if name.replace("-", "_") in by_axis:
            if (at := error.ctx) and any(each.name == name for each in at.command.params):
                return f"no option --{name}; name it so: {at.command_path} {name.upper()}"
            return f"no option --{name}; say --axis {name}=VALUE, where the command has axes"
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        near = ", ".join(error.possibilities)
        return f"no option {error.option_name}; did you mean {near}?"
    return error.format_message()


def _internal_error(error: Exception) -> tuple[str, ExitCode]:
    """Name it, and keep the traceback in a file: what has run for hours is not soon run again."""
    import traceback

    what = traceback.format_exception_only(error)[-1].strip()
    where = traceback.extract_tb(error.__traceback__)[-1]
    kept = ""
    with suppress(OSError, MemoryError):
        kept = f"; the traceback is in {_keep(''.join(traceback.format_exception(error)))}"
    sentence = f"internal error: {what} ({where.filename}:{where.lineno}){kept}"
    return sentence, ExitCode.INTERNAL_ERROR


def _keep(text: str) -> str:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(
        "w",
        encoding="utf-8",
        errors="backslashreplace",
        prefix="gcbench-traceback-",
        suffix=".txt",
        delete=False,
    ) as file:
        file.write(text)
    return file.name


def _say(sentence: str, code: ExitCode) -> int:
    say(sentence)
    return code
