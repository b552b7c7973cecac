"""``gcbench diff``: two stored experiments against each other."""

from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import PERCENT_OR_0, output_option
from harness.cli.session import checked
from harness.cli.stored import find_run
from harness.cli.tell import tell
from harness.experiment.diff import diff as compare_runs
from harness.experiment.load_rounds import one_side
from harness.experiment.result import ExperimentResult
from harness.load.result import LoadResult
from harness.report.kinds import read_result

EXAMPLES = """
\b
Examples:
  gcbench diff 2026-11-23T0900-churn latest
      the newest run against an earlier one, cell by cell
  gcbench diff before.json after.json --fail-on worse
      two results that --json wrote; exit status 1 if any cell is worse
  gcbench diff old-1,old-2,old-3 new-1,new-2,new-3
      repeated loads of one schedule; from 7 of each on they get verdicts
"""


@click.command(epilog=EXAMPLES)
@click.argument("base", metavar="RUN[,RUN...]")
@click.argument("head", metavar="RUN[,RUN...]")
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
    Runs of `gcbench load` are one round each, so name several of each side.
    """
    checked(json_path, "--json")
    result = compare_runs(_side(base, output), _side(head, output), tolerance / 100)
    tell(result, json=json_path)
    is_worse = any(each.verdict == "worse" for each in result.comparisons)
    ctx.exit(ExitCode.WORSE if fail_on and is_worse else ExitCode.MEASURED)


def _side(names: str, output: Path) -> ExperimentResult:
    files = [find_run(name, output) for name in names.split(",")]
    results = [read_result(file) for file in files]
    loads = [each for each in results if isinstance(each, LoadResult)]
    if len(loads) == len(results):
        found = [_of_load(load, file) for load, file in zip(loads, files, strict=True)]
        return one_side(found, [file.parent for file in files])
    for file, result in zip(files, results, strict=True):
        if len(files) > 1 and not isinstance(result, LoadResult):
            raise ValueError(
                f"{file} is no load: only loads are joined, for an experiment has rounds of its own"
            )
    (result,) = results
    if not isinstance(result, ExperimentResult):
        raise ValueError(
            f"{files[0]} is no experiment; gcbench diff compares what compare or load has stored"
        )
    return result


def _of_load(result: LoadResult, file: Path) -> ExperimentResult:
    if result.experiment is None or not (file.parent / "rows").is_dir():
        raise ValueError(f"{file} has no requests beside it; give the name of the load's folder")
    return result.experiment
