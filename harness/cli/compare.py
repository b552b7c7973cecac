"""``gcbench compare``: a grid of cells, interleaved, with verdicts."""

from collections.abc import Sequence
from typing import Any

import click

from harness.cli.options import (
    PERCENT_OR_0,
    SECONDS_OR_0,
    axis_options,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.parts import Compared, compare_parts, exit_code, run_parts, say_how_to_go_on
from harness.cli.session import Session
from harness.experiment.experiment_file import load
from harness.experiment.plan import counting_modes
from harness.experiment.result import ExperimentResult
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
  gcbench compare --experiment output-processing --rounds 3
      an experiment that comes as a file: several grids, one table, published figures beside it
"""

_COUNTING: tuple[Mode, ...] = (
    "counts", "probed", "tracked", "memory", "leaks", "opcodes", "wire",
)  # fmt: skip


@click.command(epilog=EXAMPLES)
@axis_options(
    representation=["list_of_lists", "list_of_arrays", "flat_arrays"],
    delivery=["per_request", "columnar"],
    gc=["default", "freeze", "disabled"],
    heap_objects=[700_000],
)
@workload_options
@click.option(
    "--experiment",
    default="",
    metavar="NAME|FILE",
    help="Run the parts of a file, see `gcbench list experiments`; other flags replace its own.",
)
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
    type=PERCENT_OR_0,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="An interval within it reads `same`.",
)
@click.option(
    "--until-precise",
    type=PERCENT_OR_0,
    default=0.0,
    metavar="PCT",
    help="Go on until each interval is within ± PCT.",
)
@click.option(
    "--budget",
    type=SECONDS_OR_0,
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
def compare(ctx: click.Context, /, *, experiment: str, **flags: Any) -> None:
    """Compare cells of a grid: every axis takes a comma-separated list, and lists cross.

    The first cell is the baseline. Each trial runs in a fresh interpreter; rounds interleave the
    cells, so that a drift of the machine meets all of them.
    """
    if experiment:
        ctx.exit(compare_parts(ctx, load(experiment), _measure))
    fail_on, phases = flags["fail_on"], flags.pop("phases")
    compared = _measure(flags)
    session, result = compared.session, compared.result
    try:
        session.write_json(result)
    finally:
        if session.shows_tables:
            conclusions = conclude(result) if result.is_complete else []
            experiment_tables(result, make_console(), phases=phases, conclusions=conclusions)
    if not result.is_complete:
        say_how_to_go_on(result.name)
    ctx.exit(exit_code([result], fail_on))


def run(ctx: click.Context, words: Sequence[str]) -> dict[str, ExperimentResult]:
    """What a command line of this command measures, by the title of the part, "" without parts.

    ``words``: all behind the command's name. Prints no tables, writes no JSON and goes on with
    nothing. Raises click.UsageError as `parse`, ValueError for what cannot be run.
    """
    own = parse(ctx, words)
    own.params |= {"json_path": None, "resume": "", "fail_on": None}
    if experiment := own.params.pop("experiment"):
        parts = run_parts(own, load(experiment), _measure).parts
        return {part.title: part.result for part in parts}
    del own.params["phases"]
    return {"": _measure(own.params).result}


def parse(ctx: click.Context, words: Sequence[str]) -> click.Context:
    """The flags that ``words`` give this command. Raises click.UsageError, for --help too."""
    return compare.make_context("compare", list(words), parent=ctx, help_option_names=[])


def _measure(flags: dict[str, Any], name: str = "") -> Compared:
    """Run a comparison as the flags have it, and sum it up."""
    flags = dict(flags)
    precise = Precision(flags.pop("until_precise") / 100, flags.pop("budget"))
    counting, tolerance = flags.pop("counting"), flags.pop("tolerance") / 100
    del flags["fail_on"]
    session = Session(flags)
    cells = session.grid.cells
    modes = counting_modes(cells, _COUNTING) if counting else []
    plan = session.plan(cells, counting=modes, tolerance=tolerance, name=name, **flags)
    return Compared(session, session.summarise(session.run(plan, precise)))
