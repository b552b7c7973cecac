"""``gcbench run``: one trial, everything about it."""

from typing import Any, get_args

import click
from rich.console import Console

from harness.cli.exit_codes import ExitCode
from harness.cli.options import anyway_option, axis_options, run_options, workload_options
from harness.cli.progress import said_once
from harness.cli.session import Session
from harness.report.terminal import make_console, print_lines
from harness.report.trial import trial_table
from harness.trial.spec import Mode, TrialResult

EXAMPLES = """
\b
Examples:
  gcbench run
      one trial of the decode workload, all its metrics
  gcbench run --mode counts --device null --batch-size 2048
      exact collection counts of the host path
  gcbench run --workload churn --gc freeze --heap-objects 700000 --json -
      requests that come and go over a serving process's heap, as JSON
"""


@click.command(epilog=EXAMPLES)
@axis_options()
@workload_options
@click.option(
    "--mode",
    default="timing",
    show_default=True,
    type=click.Choice(get_args(Mode)),
    help="Times; or exact counts of collections, objects, memory, leaks, bytecodes.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(0, 10**9),
    default=0,
    metavar="N",
    help="End after N steps.  [default: when all requests have ended]",
)
@run_options
@anyway_option
@click.pass_context
def run(ctx: click.Context, /, mode: Mode, max_steps: int, **flags: Any) -> None:
    """Run one cell once, in a fresh interpreter, and show all that was measured.

    Says nothing about noise: `gcbench compare` does.
    """
    session = Session(flags)
    console = Console(stderr=True)
    with console.status("one trial", spinner="dots"):
        outcome = session.runner.run_one(session.cell, mode, max_steps, said_once(console))
    if not isinstance(outcome, TrialResult):
        Console(stderr=True).print(
            f"gcbench: no result: {outcome.reason}", markup=False, soft_wrap=True
        )
        ctx.exit(ExitCode.NOT_MEASURED)
    session.write_json(outcome)
    if session.shows_tables:
        trial_table(outcome, make_console())
        print_lines("Notes", [*session.notes, *session.runner.lease.notes], make_console())
    if outcome.invalid:
        ctx.exit(ExitCode.NOT_MEASURED)
