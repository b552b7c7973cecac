"""What a command does with its result: files that were asked for, and the report on the screen."""

import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from errno import EISDIR
from pathlib import Path
from typing import IO, NamedTuple

import click

from harness.cli.flags import Command, ValueList, option
from harness.cli.say import say
from harness.files import write_json, write_output
from harness.render.image_file import image_suffix
from harness.render.report import Report
from harness.render.terminal import make_console, print_report
from harness.report.exports import Exported, exports
from harness.report.kinds import describe_result
from harness.result.result import NotExportedError, Result
from workloads.files.whole_file import temporary_name


def command_line() -> str:
    """The command that was given."""
    return shlex.join(["gcbench", *sys.argv[1:]])


class Telling(NamedTuple):
    """How a result is to be told: the paths of files, "-" for standard output.

    ``export``: formats, each with its file.
    """

    json: str | None = None
    image: str | None = None
    export: tuple[tuple[str, str], ...] = ()
    details: bool = False
    quiet: bool = False

    @property
    def shows_report(self) -> bool:
        """Whether standard output is for people."""
        return not self.quiet and not self.takes_stdout

    @property
    def takes_stdout(self) -> bool:
        """Whether a file that was asked for goes there."""
        return "-" in (self.json, *(path for _, path in self.export))

    def check(self) -> None:
        """Refuse now what could not be written after the measurement. Raises ValueError."""
        checked(self.json, "--json")
        checked(self.image, "--image")
        for name, path in self.export:
            checked(path, f"--export {name}=")
        if [self.json, *(path for _, path in self.export)].count("-") > 1:
            raise ValueError("--json - and --export: one of them alone can go to standard output")
        if self.image:
            image_suffix(Path(self.image))


_PLAIN = Telling()

_OPTIONS = {
    "json": option(
        "--json", metavar="FILE|-", help="Write the result there.", section="Output", is_main=True
    ),
    "image": option(
        "--image",
        metavar="FILE",
        help="Draw the result as a picture: .png or .svg.",
        section="Output",
        is_main=True,
    ),
    "details": option(
        "--details",
        is_flag=True,
        help="Show all tables, conclusions and notes.",
        section="Output",
        is_main=True,
    ),
    "quiet": option("--quiet", is_flag=True, help="No progress, no tables.", section="Output"),
}


def telling_options(
    *names: str, exported: type[Result] | None = None
) -> Callable[[Command], Command]:
    """Adds these flags of `Telling`, and ``--export`` with the formats of a kind of result."""

    def add(command: Command) -> Command:
        if exported:
            command = _export_option(exports(exported))(command)
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return add


def _export_option(formats: Collection[str]) -> Callable[[Command], Command]:
    known = ", ".join(formats)

    def parted(
        ctx: click.Context, param: click.Parameter, given: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        for each in given:
            name, _, path = each.partition("=")
            if name not in formats or not path:
                raise ValueError(f"--export {each}: give FORMAT=FILE|-; formats are {known}")
        return tuple((name, path) for name, _, path in (each.partition("=") for each in given))

    return option(
        "--export",
        type=ValueList(lambda: [f"{each}=" for each in formats]),
        callback=parted,
        multiple=True,
        metavar="FORMAT=FILE|-",
        help=f"Write it as {known}; may be repeated.",
        section="Output",
    )


def telling(ctx: click.Context) -> Telling:
    """What the command line says of it. Raises ValueError as `Telling.check`."""
    asked = Telling(**{key: each for key, each in ctx.params.items() if key in Telling._fields})
    asked.check()
    return asked


def checked(path: str | None, option: str) -> str | None:
    """The path that an option names, refused now rather than after the measurement."""
    if path and path != "-":
        file, spelled = Path(path), f"{option}{'' if option.endswith('=') else ' '}{path}"
        try:
            if not file.name:
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            with suppress(FileNotFoundError):
                temporary_name(file).stat()
            refused = file.is_dir() or not os.access(
                file if file.exists() else file.parent, os.W_OK
            )
        except OSError as error:
            raise ValueError(f"{spelled}: {error.strerror}; give another name") from None
        if refused:
            raise ValueError(f"{spelled}: cannot be written; name a file in a folder")
    return path


def tell(
    result: Result,
    how: Telling = _PLAIN,
    *,
    more: str = "",
    status: int | None = None,
    file: IO[str] | None = None,
) -> None:
    """Write the files that were asked for, and print the report whatever became of them.

    ``more``: the command that prints the details; ``status``: what this one exits with, where
    that is a part of the answer. Nothing is printed where a file goes to standard output and the
    report would, too (``file``: another one).
    """
    report = describe_result(result)
    try:
        if how.json:
            write_json(how.json, result)
        _write_files(result, report, how)
    finally:
        if not how.quiet and (not how.takes_stdout or file is not None):
            console = make_console(file)
            print_report(report, console, more, status=status, details=how.details)


def _write_files(result: Result, report: Report, how: Telling) -> None:
    picture, image = report.pictures[0] if report.pictures else None, how.image
    if image and picture:
        write_output(image, picture.draw(image_suffix(Path(image))), "--image FILE")
    elif image:
        say(f"--image {image}: not written, for there is nothing to draw")
    formats = exports(type(result))
    for name, path in how.export:
        shown = os.path.relpath(image, Path(path).parent) if image and picture else ""
        if name not in formats:
            raise ValueError(f"--export {name}: of {report.heading} there is {', '.join(formats)}")
        try:
            content = formats[name](Exported(result, report, shown))
        except NotExportedError as why:
            say(f"--export {name}={path}: not written, for {why}")
        else:
            write_output(path, content, f"--export {name}=FILE")
