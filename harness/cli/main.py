"""The command line's top: commands by name, errors as one sentence, exit codes."""

import sys

import click

from engines.protocol import EngineDeadError
from harness.store_files import StoreError

USAGE_ERROR = 2

_COMMANDS = {
    "run": "harness.cli.run:run",
    "compare": "harness.cli.compare:compare",
    "list": "harness.cli.list_:list_",
    "noise": "harness.cli.noise:noise",
    "calibrate": "harness.cli.calibrate:calibrate",
    "releases": "harness.cli.releases:releases",
    "gate": "harness.cli.gate:gate",
    "history": "harness.cli.history:history",
    "nightly": "harness.cli.nightly:nightly",
    "dashboard": "harness.cli.dashboard:dashboard",
    "workload": "harness.cli.workload:workload",
    "doctor": "harness.cli.doctor:doctor",
}


class _Commands(click.Group):
    """Imports a command when it is asked for, so that help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from importlib import import_module

        target = _COMMANDS.get(cmd_name)
        if target is None:
            return None
        module, attribute = target.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _COMMANDS, n=3, cutoff=0.4) or _COMMANDS
            raise click.UsageError(f"no command {args[0]!r}; nearest: {', '.join(near)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"max_content_width": 100})
@click.version_option(package_name="gcbench")
def cli() -> None:
    """Measure what output-token representations and garbage-collector settings cost an engine."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status: 0 measured, 1 worse, 2 usage, 3 nothing measured."""
    try:
        status = cli.main(arguments, prog_name="gcbench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return USAGE_ERROR
    except click.ClickException as error:
        return _say(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, StoreError, EngineDeadError) as error:
        return _say(str(error))
    return status if isinstance(status, int) else 0


def _say(sentence: str) -> int:
    print(f"gcbench: {sentence}", file=sys.stderr)
    return USAGE_ERROR
