"""Every ``gcbench …`` in README and docs is a command with options that there are."""

import shlex
from pathlib import Path

import click
import pytest
from pages import PAGES, CommandLine, command_lines, name_of

from harness.cli.main import cli

HISTORY = "CHANGELOG.md"
"""It names what there was."""


def refused(line: CommandLine) -> str:
    """Why the command line's parser does not take it, or ""; nothing is run."""
    lexer = shlex.shlex(line.words, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words = list(lexer)
    while "=" in words[0]:
        del words[0]
    assert words.pop(0) == "gcbench"
    ends = [words.index(sign) for sign in ("|", ";", "&&", "<", ">", "&") if sign in words]
    words = words[: min(ends, default=len(words))]
    command: click.Command = cli
    context = click.Context(cli, info_name="gcbench")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None:
            return "" if name == "COMMAND" else f"no command {name}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    try:
        _, left, _ = command.make_parser(context).parse_args(words)
    except click.BadOptionUsage as error:
        # In a sentence "--json" may stand without its file.
        return error.format_message() if line.is_whole else ""
    except click.UsageError as error:
        return error.format_message()
    return f"too many arguments: {left}" if left and line.is_whole else ""


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != HISTORY], ids=name_of)
def test_commands_parse(page: Path):
    wrong = {line.words: reason for line in command_lines(page) if (reason := refused(line))}
    assert not wrong


def test_a_wrong_command_is_refused():
    assert refused(CommandLine("gcbench compare --no-such-flag", True))
    assert refused(CommandLine("gcbench campare --gc default", True))
    assert refused(CommandLine("A=b gcbench gate main --exact-only | head -1", True)) == ""
