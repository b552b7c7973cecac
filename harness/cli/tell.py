"""What a command does with its result: files that were asked for, and the report on the screen."""

import os
from pathlib import Path
from typing import IO, Any

from harness.cli.say import say
from harness.cli.session import checked
from harness.experiment.store import write_json
from harness.files import write_output
from harness.report.image_file import image_suffix
from harness.report.kinds import describe_result
from harness.report.markdown import report_markdown
from harness.report.report import Report
from harness.report.terminal import make_console, print_report


def refuse_files(
    *, json: str | None = None, image: str | None = None, markdown: str | None = None
) -> None:
    """Refuse now what could not be written after the measurement. Raises ValueError."""
    for option, path in (("--json", json), ("--image", image), ("--markdown", markdown)):
        checked(path, option)
    if image:
        image_suffix(Path(image))


def tell(
    result: Any,
    *,
    more: str = "",
    status: int | None = None,
    details: bool = False,
    quiet: bool = False,
    json: str | None = None,
    image: str | None = None,
    markdown: str | None = None,
    file: IO[str] | None = None,
) -> None:
    """Write the files that were asked for, and print the report whatever became of them.

    ``more``: the command that prints the ``details``; ``status``: what this one exits with, where
    that is a part of the answer. Nothing is printed where JSON goes to standard output and the
    report would, too (``file``: another one).
    """
    report = describe_result(result)
    try:
        if json:
            write_json(json, result)
        _write_files(report, image, markdown)
    finally:
        if not quiet and (json != "-" or file is not None):
            print_report(report, make_console(file), more, status=status, details=details)


def _write_files(report: Report, image: str | None, markdown: str | None) -> None:
    picture = report.pictures[0] if report.pictures else None
    if image and picture:
        write_output(image, picture.draw(image_suffix(Path(image))), "--image FILE")
    elif image:
        say(f"--image {image}: not written, for there is nothing to draw")
    if markdown:
        shown = os.path.relpath(image, Path(markdown).parent) if image and picture else ""
        write_output(markdown, report_markdown(report, shown).encode(), "--markdown FILE")
