"""``gcbench diff``: two stored experiments against each other."""

from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.load_store import LOAD_FILE
from harness.cli.options import PERCENT_OR_0, output_option
from harness.cli.session import checked
from harness.cli.stored import find_run, load_run
from harness.experiment.diff import diff as compare_runs
from harness.experiment.request_slices import with_slices
from harness.experiment.result import ExperimentResult
from harness.experiment.store import write_json
from harness.load.result import LoadResult
from harness.report.diff import diff_report
from harness.report.terminal import make_console

EXAMPLES = """
\b
Examples:
  gcbench diff 2026-11-23T0900-churn latest
      the newest run against an earlier one, cell by cell
  gcbench diff 2026-11-23T0900-load-chat 2026-11-24T0900-load-chat
      two loads of one schedule: time to first token, per token, throughput
  gcbench diff before.json after.json --fail-on worse
      two results that --json wrote; exit status 1 if any cell is worse
"""


@click.command(epilog=EXAMPLES)
@click.argument("base", metavar="RUN")
@click.argument("head", metavar="RUN")
@click.option(
    "--tolerance",
    type=PERCENT_OR_0,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="An interval within ± PCT is called `same`.",
)
@click.option("--fail-on", type=click.Choice(["worse"]), help="Exit 1 if any cell is worse.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the result there.")
@output_option("Where runs are kept.")
@click.pass_context
def diff(
    ctx: click.Context,
    base: str,
    head: str,
    tolerance: float,
    fail_on: str | None,
    json_path: str | None,
    output: Path,
) -> None:
    """Compare two stored experiments cell by cell: the second RUN against the first.

    A RUN is named as for `gcbench report`. Verdicts follow the rules of `gcbench compare`. Runs of
    different machines or interpreters are refused; cells whose workload differs are left out.
    Two runs of `gcbench load` are compared in slices of their requests.
    """
    checked(json_path, "--json")
    result = compare_runs(_experiment(base, output), _experiment(head, output), tolerance / 100)
    if json_path:
        write_json(json_path, result)
    if json_path != "-":
        diff_report(result, make_console())
    is_worse = any(each.verdict == "worse" for each in result.comparisons)
    ctx.exit(ExitCode.WORSE if fail_on and is_worse else ExitCode.MEASURED)


def _experiment(name: str, output: Path) -> ExperimentResult:
    file = find_run(name, output)
    found = load_run(file)
    if isinstance(found, LoadResult):
        raise ValueError(f"{file} has no requests in it; give the name of the load's folder")
    if not isinstance(found, ExperimentResult):
        raise ValueError(
            f"{file} is no experiment; gcbench diff compares what compare or load has stored"
        )
    return with_slices(found, file.parent) if (file.parent / LOAD_FILE).is_file() else found
