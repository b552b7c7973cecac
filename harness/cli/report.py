"""``gcbench report``: any stored result again, on the terminal, as a page, a picture, Markdown."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import click

from harness.axes import Value
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked as asked_for
from harness.cli.flags import option, request_options
from harness.cli.report_results import ResultsQuestion, is_results, read_results, write_collections
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.side import side
from harness.cli.status import status_of
from harness.cli.stored import find_run, find_shard
from harness.cli.tell import checked, command_line, tell, telling, telling_options
from harness.experiment.diff import diff
from harness.experiment.merged_runs import merge_runs
from harness.experiment.store import RUNS
from harness.files import write_output
from harness.probed.read_log import is_log
from harness.render.page import report_page
from harness.report.history import nothing_compared
from harness.report.kinds import describe_result, read_result
from harness.result.result import Result
from harness.verbs.request import NO_AXES, Flag, VerbRequest

EXAMPLES = """
\b
Examples:
  gcbench report latest
      the newest run below results/runs once more
  gcbench report latest --html report.html
      one file for a browser or a pull request: answer, picture, tables
  gcbench report results/published/main-job.json --image main-job.png
      the picture of a result that --json wrote
  gcbench report 2026-11-24T0900-gate --export markdown=gate.md
      a gate's report for a pull request
  gcbench report latest --against 2026-11-23T0900-churn --fail-on worse
      the newest run against an earlier one, cell by cell
  gcbench report new-1,new-2,new-3 --against old-1,old-2,old-3
      repeated loads of one schedule; from 7 of each on they get verdicts
  gcbench report --merge 2026-11-24T0900-decode 2026-11-24T0905-decode
      what `compare --shard 1/2` and `--shard 2/2` have left on two machines
  gcbench report results
      results below ./results: the last two commits of each series
  gcbench report pauses.log --csv -
      collections that gcbench probe --log has written
  gcbench report asv.conf.json --between 078ebfa8 1c323ccd --csv figures.csv
      two commits of any project that asv measures; every value as a table
"""


class ReportRequest(VerbRequest, frozen=True, kw_only=True):
    """What is shown of which runs; ``tolerance`` in per cent."""

    decided: ClassVar[Mapping[str, list[Value]]] = NO_AXES

    runs: tuple[str, ...]
    against: Annotated[
        str,
        Flag("An earlier run to compare it with.", section="Options", is_main=True, metavar="RUN"),
    ] = ""
    tolerance: Annotated[
        float,
        Flag(
            "With --against: an interval within ± PCT is called `same`.",
            section="Options",
            is_main=True,
            metavar="PCT",
            least=0,
            most=99,
        ),
    ] = 2.0
    fail_on: Annotated[
        str,
        Flag(
            "With --against: exit 1 if any cell is worse.",
            section="Options",
            is_main=True,
            choices=("worse",),
        ),
    ] = ""
    merge: Annotated[
        bool,
        Flag("Put the RUNs, shards of one experiment, together.", section="Options", is_main=True),
    ] = False
    output: Annotated[
        Path, Flag("Where runs are kept.", section="Output", is_main=True, metavar="DIR")
    ] = RUNS


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.argument("runs", metavar="RUN...|latest|FILE|RESULTS", nargs=-1, required=True)
@request_options(ReportRequest)
@option(
    "--between",
    nargs=2,
    metavar="BASE HEAD",
    help="Of RESULTS: beginnings of two commits' hashes. [default: each series' last two]",
)
@option("--metric", metavar="LIST", help="Of RESULTS: these metrics only.")
@option(
    "--csv",
    metavar="FILE|-",
    help="Write RESULTS' figures, or a LOG's collections, one a row.",
    section="Output",
)
@option(
    "--otava", metavar="FOLDER", help="Write RESULTS' figures for Apache Otava.", section="Output"
)
@option("--html", metavar="FILE", help="Write one page that needs no network.", section="Output")
@telling_options("details", "image", "json", exported=Result)
@click.pass_context
def report(ctx: click.Context, /, *, html: str | None, **_: Any) -> None:
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
    how, request = telling(ctx), asked_for(ReportRequest, ctx)
    checked(html, "--html")
    metric = [each.strip() for each in (ctx.params["metric"] or "").split(",") if each.strip()]
    of_results = ResultsQuestion(
        ctx.params["between"], metric or None, ctx.params["csv"], ctx.params["otava"]
    )
    _refuse(request, of_results, how.json)
    is_shown = not any((html, how.image, how.export, how.json, of_results.csv, of_results.otava))
    first, output = request.runs[0], request.output
    if request.merge:
        shown = _merged(request.runs, output)
    elif request.against:
        shown = _compared(request)
    elif is_log(Path(first)):
        write_collections(Path(first), of_results.csv)
        ctx.exit()
    elif any(of_results) or is_results(first):
        shown = _changed(first, of_results, is_shown=is_shown)
    else:
        file = find_run(first, output)
        again = ["gcbench", "report", first, *_kept_in(output)]
        shown = _Shown(read_result(file), again, folder=file.parent)
    found = describe_result(shown.result, shown.folder if html else None)
    if how.image and not found.pictures:
        raise ValueError(f"--image {how.image}: there is nothing to draw in {found.name}")
    if html:
        write_output(html, report_page(found), "--html FILE")
    more = shlex.join([*shown.again, "--details"])
    status = status_of(shown.result)
    tell(shown.result, how._replace(quiet=not is_shown), more=more, status=status)
    ctx.exit(shown.status)


class _Shown(NamedTuple):
    """``again``: the command that shows it; ``folder``: where its trials' rows are."""

    result: Result
    again: list[str]
    status: ExitCode = ExitCode.MEASURED
    folder: Path | None = None


def _kept_in(output: Path) -> list[str]:
    return ["--output", str(output)] if output != RUNS else []


def _merged(runs: Sequence[str], output: Path) -> _Shown:
    shards = [find_shard(each, output) for each in runs]
    result, folder, missing = merge_runs(shards, output, command_line())
    status = ExitCode.NOT_MEASURED if missing else ExitCode.MEASURED
    return _Shown(result, ["gcbench", "report", str(folder)], status, folder)


def _compared(request: ReportRequest) -> _Shown:
    (run, against), output = (request.runs[0], request.against), request.output
    new, old = ([find_run(name, output) for name in each.split(",")] for each in (run, against))
    if both := {*new} & {*old}:
        raise ValueError(f"--against {against}: {min(both)} is the run itself; name another")
    result = diff(side(old), side(new), request.tolerance / 100)
    is_failure = bool(request.fail_on) and result.is_worse
    again = ["gcbench", "report", run, "--against", against, *_kept_in(output)]
    return _Shown(result, again, ExitCode.WORSE if is_failure else ExitCode.MEASURED)


def _changed(results: str, asked: ResultsQuestion, *, is_shown: bool) -> _Shown:
    result = read_results(results, asked, is_shown=is_shown)
    if not (result.is_compared or is_shown):
        say(f"nothing to compare: {nothing_compared(result)}")
    status = ExitCode.MEASURED if result.is_compared else ExitCode.NOT_MEASURED
    return _Shown(result, ["gcbench", "report", results, *asked.words], status)


def _refuse(request: ReportRequest, asked: ResultsQuestion, json_path: str | None) -> None:
    """Raise ValueError for what does not go together."""
    runs, is_merge, against = request.runs, request.merge, request.against
    if is_merge and against:
        raise ValueError("--merge and --against ask two questions; ask one at a time")
    if request.fail_on and not against:
        raise ValueError("--fail-on: is of two runs; name the other one with --against")
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
