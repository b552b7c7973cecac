"""``gcbench compare``: a grid of cells, interleaved, with verdicts."""

from typing import Any

import click

from harness.cli.dry_run import plan_pairs
from harness.cli.options import (
    PERCENT_OR_0,
    SECONDS_OR_0,
    axis_options,
    cluster_options,
    image_option,
    option,
    run_options,
    shard_option,
    wait_quiet_option,
    workload_options,
)
from harness.cli.parts import Compared, compare_parts, exit_code, say_how_to_go_on
from harness.cli.sections import SectionCommand
from harness.cli.session import Session
from harness.cli.tell import refuse_files, tell
from harness.experiment.experiment_file import load_experiment_file
from harness.experiment.plan import Plan, counting_modes
from harness.experiment.rounds import Precision
from harness.report.again import report_command
from harness.report.terminal import make_console, print_pairs
from harness.trial.spec import Mode

EXAMPLES = """
\b
Examples:
  gcbench compare
      the main job: token shapes and collector policies on a full decode batch
  gcbench compare --dry-run
      its cells and trials, and about how long they take
  gcbench compare --device null --gc default,batch_threshold,disabled
      the host path alone, with exact counts
  gcbench compare --workload churn --gc default,freeze --until-precise 1
      until each interval is within 1 %, or the budget is spent
  gcbench compare --worker process --gc default,freeze --details
      across a process boundary, with the phases of a step
  gcbench compare --experiment output-processing --rounds 3
      an experiment that comes as a file: several grids, one table
"""

_COUNTING: tuple[Mode, ...] = (
    "counts",
    "probed",
    "tracked",
    "memory",
    "leaks",
    "opcodes",
    "outputs",
    "wire",
)


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options(
    representation=["list_of_lists", "list_of_arrays", "flat_arrays"],
    delivery=["per_request", "columnar"],
    gc=["default", "freeze", "disabled"],
    heap_objects=[700_000],
)
@workload_options
@option(
    "--experiment",
    default="",
    metavar="NAME|FILE",
    help="Run the parts of a file (`gcbench list experiments`); other flags replace its own.",
    section="What to compare",
)
@option(
    "--baseline",
    default="",
    metavar="AXIS=VALUE",
    help="What the others are compared with.  [default: the first cell]",
    section="What to compare",
)
@option(
    "--rounds",
    default=10,
    show_default=True,
    help="Interleaved rounds; a verdict takes 7.",
    section="Precision",
    is_main=True,
)
@option(
    "--until-precise",
    type=PERCENT_OR_0,
    default=0.0,
    metavar="PCT",
    help="Add rounds until each interval is within ± PCT.",
    section="Precision",
)
@option(
    "--budget",
    type=SECONDS_OR_0,
    default=1200.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for --until-precise; --rounds are run whatever they take.",
    section="Precision",
)
@option(
    "--decide",
    default="",
    metavar="METRIC",
    help="Metric that decides.  [default: request_throughput; host_time_per_step on device null]",
    section="Precision",
)
@option(
    "--tolerance",
    type=PERCENT_OR_0,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="An interval within ± PCT is called `same`.",
    section="Precision",
)
@option(
    "--counting/--no-counting",
    default=True,
    show_default=True,
    help="Also count objects and, on device null, collections and bytecodes.",
    section="Precision",
    is_main=True,
)
@option(
    "--dry-run",
    is_flag=True,
    help="Show cells, trials and an estimate of the time; run nothing.",
    section="Output",
    is_main=True,
)
@option(
    "--details",
    is_flag=True,
    help="Show all tables, conclusions and notes.",
    section="Output",
    is_main=True,
)
@image_option
@option(
    "--fail-on",
    type=click.Choice(["worse"]),
    help="Exit with status 1 if any cell is worse.",
    section="Output",
)
@option(
    "--resume",
    default="",
    metavar="NAME",
    help="Go on with an experiment that was interrupted, or with more --rounds.",
    section="Output",
)
@cluster_options
@shard_option
@wait_quiet_option
@run_options
@click.pass_context
def compare(ctx: click.Context, /, *, experiment: str, **flags: Any) -> None:
    """Compare cells of a grid: every axis takes a list of values, and lists cross.

    The first cell is the baseline. Each trial runs in a fresh interpreter. Rounds interleave the
    cells, so that a drift of the machine affects all of them alike.
    """
    image_path = flags.pop("image_path")
    if experiment:
        wanted = load_experiment_file(experiment)
        of_one_grid = {
            "--dry-run": flags["dry_run"],
            "--image": image_path,
            "--shard": flags["shard"],
        }
        if flag := next((name for name, given in of_one_grid.items() if given), ""):
            raise ValueError(
                f"--experiment has several grids and {flag} is of one; leave either out"
            )
        ctx.exit(compare_parts(ctx, wanted, _measure))
    refuse_files(image=image_path)
    fail_on, details = flags["fail_on"], flags.pop("details")
    if flags.pop("dry_run"):
        flags |= {"wait_quiet": "", "anyway": True}
        session, plan, precise = _planned(flags, name="dry-run")
        print_pairs(plan_pairs(session, plan, precise), make_console())
        return
    compared = _measure(flags)
    session, result = compared.session, compared.result
    tell(
        result,
        more=report_command(session.runner.output, result.name),
        details=details,
        image=image_path,
        **session.told,
    )
    if not result.is_complete:
        say_how_to_go_on(result.name)
    ctx.exit(exit_code([result], fail_on))


def _planned(flags: dict[str, Any], name: str = "") -> tuple[Session, Plan, Precision]:
    """What the flags ask for, before anything runs."""
    flags = dict(flags)
    precise = Precision(flags.pop("until_precise") / 100, flags.pop("budget"))
    counting, tolerance = flags.pop("counting"), flags.pop("tolerance") / 100
    del flags["fail_on"]
    if flags["shard"] and precise.half_width:
        raise ValueError("--shard: no shard sees when all are precise; leave out --until-precise")
    session = Session(flags)
    cells = session.grid.cells
    modes = counting_modes(cells, _COUNTING) if counting else []
    plan = session.plan(cells, counting=modes, tolerance=tolerance, name=name, **flags)
    return session, plan, precise


def _measure(flags: dict[str, Any], name: str = "") -> Compared:
    """Run a comparison as the flags have it, and sum it up."""
    session, plan, precise = _planned(flags, name)
    return Compared(session, session.summarise(session.run(plan, precise)))
