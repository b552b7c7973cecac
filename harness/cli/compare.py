"""``gcbench compare``: a grid of cells, interleaved, with verdicts."""

from typing import Any

import click
from rich.console import Console

from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, wait_quiet_option, workload_options
from harness.cli.session import Session
from harness.experiment.plan import counting_modes
from harness.experiment.rounds import Precision
from harness.report.conclusion import conclude
from harness.report.terminal import experiment_tables, make_console
from harness.trial.spec import Mode

EXAMPLES = """
\b
Examples:
  gcbench compare
      the main job: token shapes and collector policies on a full decode batch
  gcbench compare --device null --gc default,batch_threshold,disabled
      the host path alone, with exact counts
  gcbench compare --workload churn --gc default,freeze --until-precise 1
      until each interval is within 1 %, or the budget is spent
  gcbench compare --representation list_of_lists,flat_arrays --worker process --phases
      across a process boundary, each step broken down
"""

_COUNTING: tuple[Mode, ...] = (
    "counts", "probed", "tracked", "memory", "leaks", "opcodes",
)  # fmt: skip


@click.command(epilog=EXAMPLES)
@axis_options(
    representation=["list_of_lists", "list_of_arrays", "flat_arrays"],
    delivery=["per_request", "columnar"],
    gc=["default", "freeze", "disabled"],
    heap_objects=[700_000],
)
@workload_options
@click.option("--rounds", default=7, show_default=True, help="Interleaved rounds; 7 for a verdict.")
@click.option("--baseline", default="", metavar="AXIS=VALUE", help="Baseline; the first cell else.")
@click.option(
    "--decide",
    default="",
    metavar="METRIC",
    help="Metric that decides; request_throughput, on null host_time_per_step.",
)
@click.option(
    "--tolerance",
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="An interval within it reads `same`.",
)
@click.option(
    "--until-precise", default=0.0, metavar="PCT", help="Go on until each interval is within ± PCT."
)
@click.option(
    "--budget",
    default=1200.0,
    show_default=True,
    metavar="SECONDS",
    help="Of time for --until-precise; the rounds are run whatever they take.",
)
@click.option("--phases", is_flag=True, help="Break a step down.")
@click.option(
    "--counting/--no-counting",
    default=True,
    show_default=True,
    help="Also run the trials that count objects and, on null, collections and bytecodes.",
)
@click.option("--fail-on", type=click.Choice(["worse"]), help="Exit 1 if any cell is.")
@click.option("--resume", default="", metavar="NAME", help="Go on with an experiment.")
@wait_quiet_option
@run_options
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    *,
    phases: bool,
    fail_on: str | None,
    until_precise: float,
    budget: float,
    tolerance: float,
    counting: bool,
    **flags: Any,
) -> None:
    """Compare cells of a grid: every axis takes a comma-separated list, and lists cross.

    The first cell is the baseline. Each trial runs in a fresh interpreter; rounds interleave the
    cells, so that a drift of the machine meets all of them.
    """
    session = Session(flags)
    cells = session.grid.cells
    modes = counting_modes(cells, _COUNTING) if counting else []
    plan = session.plan(cells, counting=modes, tolerance=tolerance / 100, **flags)
    ran = session.run(plan, Precision(until_precise / 100, budget))
    result = session.summarise(ran)
    try:
        session.write_json(result)
    finally:
        if session.shows_tables:
            conclusions = [] if ran.is_interrupted else conclude(result)
            experiment_tables(result, make_console(), phases=phases, conclusions=conclusions)
    if ran.is_interrupted:
        words = f"interrupted, incomplete; go on with the same command and --resume {plan.name}"
        Console(stderr=True).print(words, highlight=False, soft_wrap=True)
        ctx.exit(ExitCode.INTERRUPTED)
    if not any(cell.samples for cell in result.cells):
        ctx.exit(ExitCode.NOT_MEASURED)
    if fail_on and any(comparison.verdict == fail_on for comparison in result.comparisons):
        ctx.exit(ExitCode.WORSE)
