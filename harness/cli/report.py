"""``gcbench report``: any stored run again, on the terminal, as a page, a picture or Markdown."""

import shlex
from collections.abc import Callable
from pathlib import Path

import click

from harness.cli.load_store import LOAD_FILE
from harness.cli.options import output_option
from harness.cli.session import checked
from harness.cli.status import gate_status, nightly_status
from harness.cli.stored import Stored, find_run, load_run
from harness.experiment.experiment_file import PartsResult
from harness.experiment.noise_result import NoiseResult
from harness.experiment.result import ExperimentResult
from harness.files import write_output
from harness.load.result import LoadResult
from harness.report.answer import experiment_report
from harness.report.experiment_image import experiment_image
from harness.report.experiment_page import experiment_page
from harness.report.gate import gate_markdown
from harness.report.gate_answer import gate_report
from harness.report.gate_image import gate_image
from harness.report.gate_page import gate_page
from harness.report.image_file import image_suffix
from harness.report.load import load_tables
from harness.report.markdown import experiment_markdown
from harness.report.nightly import nightly_markdown
from harness.report.nightly_answer import nightly_report
from harness.report.nightly_image import nightly_image
from harness.report.nightly_page import nightly_page
from harness.report.noise import noise_report
from harness.report.parts_answer import parts_markdown, parts_report
from harness.report.parts_page import parts_page
from harness.report.terminal import make_console
from harness.tracking.gate.result import GateResult
from harness.tracking.nightly.result import NightlyResult

EXAMPLES = """
\b
Examples:
  gcbench report latest
      the newest run below results/runs once more
  gcbench report latest --html report.html
      one file for a browser or a pull request: conclusion, picture, tables
  gcbench report results/published/main-job.json --image main-job.png
      the picture of a result that --json wrote
  gcbench report 2026-11-24T0900-gate --markdown gate.md
      a gate's report for a pull request
  gcbench report results/nightly --html night.html
      the last night, with the series that changed around their steps
"""


@click.command(epilog=EXAMPLES)
@click.argument("run", metavar="NAME|latest|FILE")
@click.option("--html", "html_path", metavar="FILE", help="Write one page that needs no network.")
@click.option("--image", "image_path", metavar="FILE", help="Write the picture: .png or .svg.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write it for a pull request.")
@click.option("--details", is_flag=True, help="Show all tables, conclusions and notes.")
@output_option("Where runs are kept.")
def report(
    run: str,
    html_path: str | None,
    image_path: str | None,
    markdown_path: str | None,
    details: bool,
    output: Path,
) -> None:
    """Show a stored run again: an experiment, a load, a gate, a night or a noise floor.

    RUN is a name below results/runs, the path of such a folder, `latest`, or a file that --json
    wrote. With --html, --image or --markdown that is written, and nothing is printed.
    """
    for path, option in ((html_path, "--html"), (markdown_path, "--markdown")):
        checked(path, option)
    file = find_run(run, output)
    stored = load_run(file)
    wanted: list[tuple[str | None, str, Callable[[], bytes]]] = [
        (html_path, "--html FILE", lambda: _html(stored, file)),
        (image_path, "--image FILE", lambda: _image(stored, Path(image_path or ""))),
        (markdown_path, "--markdown FILE", lambda: _markdown(stored, file).encode()),
    ]
    asked = [(path, option, made()) for path, option, made in wanted if path]
    for path, option, content in asked:
        write_output(path, content, option)
    if not asked:
        details_of_load = file.parent / LOAD_FILE
        if isinstance(stored, ExperimentResult) and not details and details_of_load.is_file():
            stored = load_run(details_of_load)
        _show(stored, f"gcbench report {shlex.quote(run)} --details", details)


def _show(stored: Stored, more: str, details: bool) -> None:
    """As the command that made it did; ``more`` is the command that prints the details."""
    console = make_console()
    match stored:
        case ExperimentResult():
            experiment_report(stored, console, more, details=details)
        case PartsResult():
            parts_report(stored, console, more, details=details)
        case LoadResult():
            load_tables(stored, console)
        case GateResult():
            gate_report(stored, gate_status(stored), console, more, details=details)
        case NightlyResult():
            nightly_report(stored, nightly_status(stored), console, details=details)
        case NoiseResult():
            noise_report(stored, console)


def _html(stored: Stored, file: Path) -> bytes:
    match stored:
        case ExperimentResult():
            return experiment_page(stored, file.parent)
        case PartsResult():
            return parts_page(stored)
        case GateResult():
            return gate_page(stored)
        case NightlyResult():
            return nightly_page(stored)
    raise ValueError(f"--html: {file} {_OTHERWISE}")


def _image(stored: Stored, path: Path) -> bytes:
    suffix = image_suffix(path)
    match stored:
        case ExperimentResult():
            return experiment_image(stored, suffix)
        case PartsResult():
            raise ValueError(f"--image {path}: each part has its picture; --html shows them all")
        case GateResult():
            return gate_image(stored, suffix)
        case NightlyResult():
            return nightly_image(stored, suffix)
    raise ValueError(f"--image {path}: {_OTHERWISE}")


def _markdown(stored: Stored, file: Path) -> str:
    match stored:
        case ExperimentResult():
            return experiment_markdown(stored)
        case PartsResult():
            return parts_markdown(stored)
        case GateResult():
            return gate_markdown(stored)
        case NightlyResult():
            return nightly_markdown(stored)
    raise ValueError(f"--markdown: {file} {_OTHERWISE}")


_OTHERWISE = "is neither an experiment, nor a gate, nor a night; without the flag it is printed"
