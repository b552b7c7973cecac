"""``gcbench report``: any stored result again, on the terminal, as a page, a picture, Markdown."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import PERCENT_OR_0, CommaList, output_option
from harness.cli.report_results import ResultsQuestion, is_results, read_results
from harness.cli.say import say
from harness.cli.session import checked, command_line
from harness.cli.side import side
from harness.cli.status import status_of
from harness.cli.stored import find_run, find_shard
from harness.experiment.diff import diff
from harness.experiment.merged_runs import merge_runs
from harness.files import write_json, write_output
from harness.report.history import nothing_compared
from harness.report.image_file import image_suffix
from harness.report.kinds import describe, read_result
from harness.report.markdown import report_markdown
from harness.report.page import report_page
from harness.report.report import Report
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
  gcbench report --merge 2026-11-24T0900-decode 2026-11-24T0905-decode
      what `compare --shard 1/2` and `--shard 2/2` have left on two machines
  gcbench report results
      results below ./results: the last two commits of each series
  gcbench report asv.conf.json --between 078ebfa8 1c323ccd --csv figures.csv
      two commits of any project that asv measures; every value as a table
"""


class _Files(NamedTuple):
    """Where the result and its report are to be written, None for what was not asked for."""

    html: str | None
    image: str | None
    markdown: str | None
    json: str | None

    def check(self) -> None:
        """Raise ValueError for what could not be written."""
        checked(self.html, "--html")
        checked(self.markdown, "--markdown")
        checked(self.json, "--json")
        if self.image:
            image_suffix(Path(self.image))

    def write(self, result: Result, report: Report) -> None:
        """Raises ValueError where there is nothing to draw, StoreError."""
        if self.image and not report.pictures:
            raise ValueError(f"--image {self.image}: there is nothing to draw in {report.name}")
        if self.json:
            write_json(self.json, result)
        if self.html:
            write_output(self.html, report_page(report), "--html FILE")
        if self.image:
            picture = report.pictures[0].draw(image_suffix(Path(self.image)))
            write_output(self.image, picture, "--image FILE")
        if self.markdown:
            write_output(self.markdown, report_markdown(report).encode(), "--markdown FILE")


@click.command(epilog=EXAMPLES)
@click.argument("runs", metavar="RUN...|latest|FILE|RESULTS", nargs=-1, required=True)
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
@click.option("--merge", is_flag=True, help="Put the RUNs, shards of one experiment, together.")
@click.option(
    "--between",
    nargs=2,
    metavar="BASE HEAD",
    help="Of RESULTS: beginnings of two commits' hashes. [default: each series' last two]",
)
@click.option("--metric", "metrics", type=CommaList(), help="Of RESULTS: these metrics only.")
@click.option("--csv", "csv_path", metavar="FILE|-", help="Write RESULTS' figures, one a row.")
@click.option("--otava", metavar="FOLDER", help="Write RESULTS' figures for Apache Otava.")
@output_option("Where runs are kept.")
@click.pass_context
def report(
    ctx: click.Context, /, runs: tuple[str, ...], details: bool, output: Path, **flags: Any
) -> None:
    """Show a stored run again, whichever command made it; against an earlier one; or what changed.

    RUN is a name below results/runs, the path of such a folder, `latest`, or a file that --json
    wrote. Where a file is asked for it is written, and nothing is printed.

    --against compares two experiments cell by cell, by the rules of `gcbench compare`. Runs of
    different machines or interpreters are refused; cells whose workload differs are left out.
    Runs of `gcbench load` are one round each, so name several of each side, commas between them.

    --merge copies the trials of shards (`gcbench compare --shard`) into a new run and judges that.
    Shards of another plan, code, interpreter or machine, or with a block in common, are refused.

    RESULTS is an asv results folder, an asv.conf.json, or a folder with these or raw trials below.
    Each series is judged by its whole history. Exit status 3 where nothing compares.
    """
    asked = ResultsQuestion(*(flags[name] for name in ("between", "metrics", "csv_path", "otava")))
    against, is_merge = flags["against"], flags["merge"]
    _refuse(runs, asked, against, flags["json_path"], is_merge=is_merge)
    files = _Files(*(flags[f"{name}_path"] for name in _Files._fields))
    files.check()
    is_shown = not any((*files, asked.csv, asked.otava))
    if is_merge:
        shown = _merged(runs, output)
    elif against:
        shown = _compared(runs[0], output, flags)
    elif any(asked) or is_results(runs[0]):
        shown = _changed(runs[0], asked, is_shown=is_shown)
    else:
        file = find_run(runs[0], output)
        shown = _Shown(read_result(file), ["gcbench", "report", runs[0]], folder=file.parent)
    found = describe(shown.result, shown.folder if files.html else None)
    files.write(shown.result, found)
    if is_shown:
        more = shlex.join([*shown.again, "--details"])
        status = status_of(shown.result)
        print_report(found, make_console(), more, status=status, details=details)
    ctx.exit(shown.status)


class _Shown(NamedTuple):
    """``again``: the command that shows it; ``folder``: where its trials' rows are."""

    result: Result
    again: list[str]
    status: ExitCode = ExitCode.MEASURED
    folder: Path | None = None


def _merged(runs: Sequence[str], output: Path) -> _Shown:
    shards = [find_shard(each, output) for each in runs]
    result, folder, missing = merge_runs(shards, output, command_line())
    status = ExitCode.NOT_MEASURED if missing else ExitCode.MEASURED
    return _Shown(result, ["gcbench", "report", str(folder)], status, folder)


def _compared(run: str, output: Path, flags: Mapping[str, Any]) -> _Shown:
    against = flags["against"]
    result = diff(side(against, output), side(run, output), flags["tolerance"] / 100)
    is_failure = bool(flags["fail_on"]) and result.is_worse
    again = ["gcbench", "report", run, "--against", against]
    return _Shown(result, again, ExitCode.WORSE if is_failure else ExitCode.MEASURED)


def _changed(results: str, asked: ResultsQuestion, *, is_shown: bool) -> _Shown:
    result = read_results(results, asked, is_shown=is_shown)
    if not (result.is_compared or is_shown):
        say(f"nothing to compare: {nothing_compared(result)}")
    status = ExitCode.MEASURED if result.is_compared else ExitCode.NOT_MEASURED
    return _Shown(result, ["gcbench", "report", results, *asked.words], status)


def _refuse(
    runs: Sequence[str],
    asked: ResultsQuestion,
    against: str,
    json_path: str | None,
    *,
    is_merge: bool,
) -> None:
    """Raise ValueError for what does not go together."""
    if is_merge and against:
        raise ValueError("--merge and --against ask two questions; ask one at a time")
    if any(asked) and (is_merge or against):
        which = "--merge" if is_merge else "--against"
        raise ValueError(
            f"{which}: is of runs, --between, --metric, --csv and --otava of RESULTS; ask one at a "
            "time"
        )
    if len(runs) > 1 and not is_merge:
        raise ValueError(f"{runs[1]}: one run is shown at a time; --merge puts shards together")
    if json_path == asked.csv == "-":
        raise ValueError("--json - and --csv - both go to standard output; name a file for one")
