"""``gcbench run``: one trial, everything about it."""

from importlib import import_module
from typing import Any, get_args

import click
from rich.console import Console

from harness.cli.exit_codes import ExitCode
from harness.cli.options import anyway_option, axis_options, run_options, workload_options
from harness.cli.progress import said_once
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked
from harness.experiment.run import OneRun
from harness.files import write_output
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
  gcbench run --gc default --perfetto trial.pftrace
      its steps, collections and requests on a time line for ui.perfetto.dev
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options()
@workload_options
@click.option(
    "--mode",
    default="timing",
    show_default=True,
    type=click.Choice(get_args(Mode)),
    metavar="MODE",
    help=f"Times, or what else is counted: {', '.join(get_args(Mode))}.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(0, 10**9),
    default=0,
    metavar="N",
    help="End after N steps.  [default: when all requests have ended]",
)
@click.option(
    "--perfetto", "perfetto_path", metavar="FILE", help="A trace of the trial for ui.perfetto.dev."
)
@run_options
@anyway_option
@click.pass_context
def run(
    ctx: click.Context, /, mode: Mode, max_steps: int, perfetto_path: str | None, **flags: Any
) -> None:
    """Run one cell once, in a fresh interpreter, and show all that was measured.

    Says nothing about noise: `gcbench compare` does.
    """
    if perfetto_path:
        _check_trace(perfetto_path, mode)
    session = Session(flags)
    console = Console(stderr=True)
    with console.status("one trial", spinner="dots"):
        ran = session.runner.run_one(session.cell, mode, max_steps, said_once(console))
    outcome = ran.outcome
    if not isinstance(outcome, TrialResult):
        Console(stderr=True).print(
            f"gcbench: no result: {outcome.reason}", markup=False, soft_wrap=True
        )
        ctx.exit(ExitCode.NOT_MEASURED)
    if perfetto_path:
        _write_trace(perfetto_path, ran, outcome)
    session.write_json(outcome)
    if session.shows_tables:
        trial_table(outcome, make_console())
        print_lines("Notes", [*session.notes, *session.runner.lease.notes], make_console())
    if outcome.invalid:
        ctx.exit(ExitCode.NOT_MEASURED)


def _check_trace(path: str, mode: Mode) -> None:
    """Refuse now what would be refused after the measurement.

    Raises ValueError, and ModuleNotFoundError where the package ``perfetto`` is missing.
    """
    if path == "-":
        raise ValueError("--perfetto -: a trace is not text; name a file")
    checked(path, "--perfetto")
    if mode != "timing":
        raise ValueError(
            f"--perfetto and --mode {mode}: only a timing trial says when things happened; leave "
            "one of the two out"
        )
    import_module("harness.report.perfetto")


def _write_trace(path: str, ran: OneRun, result: TrialResult) -> None:
    from harness.report.perfetto import perfetto_trace

    roles = [process.role for process in result.processes]
    trace = perfetto_trace(ran.store.load_rows(ran.key), roles)
    write_output(path, trace, "--perfetto FILE")
