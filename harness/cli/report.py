"""``gcbench report``: any stored run again, on the terminal, as a page, a picture or Markdown."""

import shlex
from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import PERCENT_OR_0, output_option
from harness.cli.session import checked
from harness.cli.side import side
from harness.cli.status import status_of
from harness.cli.stored import find_run
from harness.experiment.diff import DiffResult, diff
from harness.files import write_json, write_output
from harness.report.image_file import image_suffix
from harness.report.kinds import describe_result, read_result
from harness.report.markdown import report_markdown
from harness.report.page import report_page
from harness.report.terminal import make_console, print_report
from harness.result.result import Result

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
  gcbench report latest --against 2026-11-23T0900-churn --fail-on worse
      the newest run against an earlier one, cell by cell
  gcbench report new-1,new-2,new-3 --against old-1,old-2,old-3
      repeated loads of one schedule; from 7 of each on they get verdicts
"""


@click.command(epilog=EXAMPLES)
@click.argument("run", metavar="NAME|latest|FILE")
@click.option("--html", "html_path", metavar="FILE", help="Write one page that needs no network.")
@click.option("--image", "image_path", metavar="FILE", help="Write the picture: .png or .svg.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write it for a pull request.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the result there.")
@click.option("--details", is_flag=True, help="Show all tables, conclusions and notes.")
@click.option("--against", default="", metavar="RUN", help="An earlier run to compare it with.")
@click.option(
    "--tolerance",
    type=PERCENT_OR_0,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="With --against: an interval within ± PCT is called `same`.",
)
@click.option(
    "--fail-on", type=click.Choice(["worse"]), help="With --against: exit 1 if any cell is worse."
)
@output_option("Where runs are kept.")
@click.pass_context
def report(
    ctx: click.Context,
    run: str,
    html_path: str | None,
    image_path: str | None,
    markdown_path: str | None,
    json_path: str | None,
    details: bool,
    against: str,
    tolerance: float,
    fail_on: str | None,
    output: Path,
) -> None:
    """Show a stored run again, whichever command made it; or against an earlier one.

    RUN is a name below results/runs, the path of such a folder, `latest`, or a file that --json
    wrote. Where a file is asked for it is written, and nothing is printed.

    --against compares two experiments cell by cell, by the rules of `gcbench compare`. Runs of
    different machines or interpreters are refused; cells whose workload differs are left out.
    Runs of `gcbench load` are one round each, so name several of each side, commas between them.
    """
    files = {"--html": html_path, "--markdown": markdown_path, "--json": json_path}
    for option, path in files.items():
        checked(path, option)
    suffix = image_suffix(Path(image_path)) if image_path else ""
    result: Result
    if against:
        result, folder = diff(side(against, output), side(run, output), tolerance / 100), None
    else:
        file = find_run(run, output)
        result, folder = read_result(file), file.parent
    found = describe_result(result, folder if html_path else None)
    if image_path and not found.pictures:
        raise ValueError(f"--image {image_path}: there is nothing to draw in {found.name}")
    if json_path:
        write_json(json_path, result)
    if html_path:
        write_output(html_path, report_page(found), "--html FILE")
    if image_path:
        write_output(image_path, found.pictures[0].draw(suffix), "--image FILE")
    if markdown_path:
        write_output(markdown_path, report_markdown(found).encode(), "--markdown FILE")
    if not (html_path or image_path or markdown_path or json_path):
        words = ["gcbench", "report", run, *(["--against", against] if against else [])]
        more = shlex.join([*words, "--details"])
        print_report(found, make_console(), more, status=status_of(result), details=details)
    is_worse = isinstance(result, DiffResult) and result.is_worse
    ctx.exit(ExitCode.WORSE if fail_on and is_worse else ExitCode.MEASURED)
