"""``gcbench compare``: a grid of cells, interleaved, with verdicts."""

from typing import Any

import click
from msgspec.structs import replace

from harness.cli.caller import CommandLine
from harness.cli.dry_run import plan_pairs, print_dry_run
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, given, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.experiment.experiment_file import PartsResult, load_experiment_file
from harness.experiment.result import ExperimentResult
from harness.render.terminal import make_console, print_pairs
from harness.report.again import report_command
from harness.verbs.call import compare_function, with_calls
from harness.verbs.compare import CompareRequest, compare_cells, planned
from harness.verbs.engine_values import engine_values
from harness.verbs.parts import compare_parts, part_requests
from harness.verbs.quiet import NOT

EXAMPLES = """
\b
Examples:
  gcbench compare
      the main job: token shapes and collector policies on a full decode batch
  gcbench compare --dry-run > cells.toml
      its cells and trials and about how long they take, as a file to edit
  gcbench compare @cells.toml --rounds 7
      what a file asks for, but for what flags say
  gcbench compare --device null --gc default,batch_threshold,disabled
      the host path alone, with exact counts
  gcbench compare --workload churn --gc default,freeze --until-precise 1
      until each interval is within 1 %, or the budget is spent
  gcbench compare --call mypackage.parsing:parse_page --gc default,freeze
      a function of your own, with its costly lines
  gcbench compare --worker process --gc default,freeze --details
      across a process boundary, with the phases of a step
  gcbench compare --experiment output-processing --rounds 3
      an experiment that comes as a file: several grids, one table
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@option(
    "--experiment",
    default="",
    metavar="NAME|FILE",
    help="Run the parts of a file (`gcbench list experiments`); other flags replace its own.",
    section="What to compare",
)
@request_options(CompareRequest)
@option(
    "--dry-run",
    is_flag=True,
    help="Run nothing; show cells, trials, an estimate of the time, and a file that asks for it.",
    section="Output",
    is_main=True,
)
@option(
    "--fail-on",
    type=click.Choice(["worse"]),
    help="Exit with status 1 if any cell is worse.",
    section="Output",
)
@telling_options("details", "json", "image", "quiet")
@click.pass_context
def compare(
    ctx: click.Context, /, *, experiment: str, dry_run: bool, fail_on: str | None, **_: Any
) -> None:
    """Compare cells of a grid: every axis takes a list of values, and lists cross.

    The first cell is the baseline. Each trial runs in a fresh interpreter. Rounds interleave the
    cells, so that a drift of the machine affects all of them alike.
    """
    how, request = telling(ctx), asked(CompareRequest, ctx)
    result: ExperimentResult | PartsResult
    with CommandLine(quiet=how.quiet) as caller:
        if experiment:
            file = load_experiment_file(experiment)
            of_one_grid = {
                "--call": request.call,
                "--image": how.image,
                "--shard": ctx.params["shard"],
            }
            if flag := next((name for name, each in of_one_grid.items() if each), ""):
                raise ValueError(
                    f"--experiment has several grids and {flag} is of one; leave either out"
                )
            if dry_run:
                for part, each in zip(
                    file.parts, part_requests(file, given(ctx, CompareRequest)), strict=True
                ):
                    click.echo(f"\n{part.title}")
                    print_pairs(plan_pairs(planned(_unwatched(each), caller)), make_console())
                return
            result = compare_parts(file, given(ctx, CompareRequest), caller)
        elif dry_run:
            unwatched = _unwatched(request)
            unwatched = with_calls(unwatched, caller) if request.call else unwatched
            pairs = plan_pairs(planned(unwatched, caller))
            print_dry_run(pairs, request, engine_values(request))
            return
        elif request.call:
            answer = compare_function(request, caller)
            result = answer.comparison
        else:
            result = compare_cells(request, caller)
    tell(result, how, more=report_command(request.output, result.name))
    if request.call and how.shows_report:
        for costs in answer.costs:
            tell(costs, how._replace(json=None, image=None))
        click.echo(f"\nAdvice: {answer.advice}")
    if not result.is_complete:
        again = "the same command and --resume"
        say(f"interrupted, incomplete; go on with {again} {result.name}")
    ctx.exit(_status(result, fail_on))


def _unwatched(request: CompareRequest) -> CompareRequest:
    """As it is looked at and not run: no wait, and no folder of its own."""
    return replace(request, wait=NOT, name="dry-run")


def _status(result: ExperimentResult | PartsResult, fail_on: str | None) -> ExitCode:
    results = (
        [part.result for part in result.parts] if isinstance(result, PartsResult) else [result]
    )
    if not all(each.is_complete for each in results):
        return ExitCode.INTERRUPTED
    if not all(any(cell.samples for cell in each.cells) for each in results):
        return ExitCode.NOT_MEASURED
    verdicts = [each.verdict for result in results for each in result.comparisons]
    if fail_on and fail_on in verdicts:
        return ExitCode.WORSE
    return ExitCode.NOT_MEASURED if any(each.missing for each in results) else ExitCode.MEASURED
