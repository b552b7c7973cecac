"""``gcbench report``: any stored run again, on the terminal, as a page, a picture or Markdown."""

import shlex
from pathlib import Path

import click

from harness.cli.options import output_option
from harness.cli.session import checked
from harness.cli.status import status_of
from harness.cli.stored import find_run
from harness.files import write_output
from harness.report.image_file import image_suffix
from harness.report.kinds import describe, read_result
from harness.report.markdown import report_markdown
from harness.report.page import report_page
from harness.report.terminal import make_console, print_report

EXAMPLES = """
\b
Examples:
  gcbench report latest
      the newest run below results/runs once more
  gcbench report latest --html report.html
      one file for a browser or a pull request: answer, picture, tables
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
    """Show a stored run again, whichever command made it.

    RUN is a name below results/runs, the path of such a folder, `latest`, or a file that --json
    wrote. With --html, --image or --markdown that is written, and nothing is printed.
    """
    for path, option in ((html_path, "--html"), (markdown_path, "--markdown")):
        checked(path, option)
    suffix = image_suffix(Path(image_path)) if image_path else ""
    file = find_run(run, output)
    stored = read_result(file)
    found = describe(stored, file.parent if html_path else None)
    if image_path and not found.pictures:
        raise ValueError(f"--image {image_path}: there is nothing to draw in {file}")
    if html_path:
        write_output(html_path, report_page(found), "--html FILE")
    if image_path:
        write_output(image_path, found.pictures[0].draw(suffix), "--image FILE")
    if markdown_path:
        write_output(markdown_path, report_markdown(found).encode(), "--markdown FILE")
    if not (html_path or image_path or markdown_path):
        more = f"gcbench report {shlex.quote(run)} --details"
        print_report(found, make_console(), more, status=status_of(stored), details=details)
