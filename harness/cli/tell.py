"""What a command does with its result: files that were asked for, and the report on the screen."""

import os
from collections.abc import Callable
from contextlib import suppress
from errno import EISDIR
from pathlib import Path
from typing import IO, NamedTuple

import click

from harness.cli.flags import Command, option
from harness.cli.say import say
from harness.files import write_json, write_output
from harness.render.image_file import image_suffix
from harness.render.markdown import report_markdown
from harness.render.report import Report
from harness.render.terminal import make_console, print_report
from harness.report.kinds import describe_result
from harness.result.result import Result
from workloads.files.whole_file import temporary_name


class Telling(NamedTuple):
    """How a result is to be told: the paths of files, "-" for standard output."""

    json: str | None = None
    image: str | None = None
    markdown: str | None = None
    details: bool = False
    quiet: bool = False

    @property
    def shows_report(self) -> bool:
        """Whether standard output is for people."""
        return not self.quiet and self.json != "-"

    def check(self) -> None:
        """Refuse now what could not be written after the measurement. Raises ValueError."""
        for name in ("json", "image", "markdown"):
            checked(getattr(self, name), f"--{name}")
        if self.image:
            image_suffix(Path(self.image))
        if self.markdown == "-":
            raise ValueError("--markdown -: must be a file; --json - prints to standard output")


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
    "markdown": option(
        "--markdown", metavar="FILE", help="Write the report there too.", section="Output"
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


def telling_options(*names: str) -> Callable[[Command], Command]:
    """Adds these flags of `Telling`."""

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return add


def telling(ctx: click.Context) -> Telling:
    """What the command line says of it. Raises ValueError as `Telling.check`."""
    asked = Telling(**{key: each for key, each in ctx.params.items() if key in Telling._fields})
    asked.check()
    return asked


def checked(path: str | None, option: str) -> str | None:
    """The path that an option names, refused now rather than after the measurement."""
    if path and path != "-":
        file = Path(path)
        try:
            if not file.name:
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            with suppress(FileNotFoundError):
                temporary_name(file).stat()
            refused = file.is_dir() or not os.access(
                file if file.exists() else file.parent, os.W_OK
            )
        except OSError as error:
            raise ValueError(f"{option} {path}: {error.strerror}; give another name") from None
        if refused:
            raise ValueError(f"{option} {path}: cannot be written; name a file in a folder")
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
    that is a part of the answer. Nothing is printed where JSON goes to standard output and the
    report would, too (``file``: another one).
    """
    report = describe_result(result)
    try:
        if how.json:
            write_json(how.json, result)
        _write_files(report, how.image, how.markdown)
    finally:
        if not how.quiet and (how.json != "-" or file is not None):
            console = make_console(file)
            print_report(report, console, more, status=status, details=how.details)


def _write_files(report: Report, image: str | None, markdown: str | None) -> None:
    picture = report.pictures[0] if report.pictures else None
    if image and picture:
        write_output(image, picture.draw(image_suffix(Path(image))), "--image FILE")
    elif image:
        say(f"--image {image}: not written, for there is nothing to draw")
    if markdown:
        shown = os.path.relpath(image, Path(markdown).parent) if image and picture else ""
        write_output(markdown, report_markdown(report, shown).encode(), "--markdown FILE")
