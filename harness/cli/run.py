"""``gcbench run``: one trial, everything about it."""

from importlib import import_module
from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import checked, tell, telling, telling_options
from harness.experiment.store import RunStore
from harness.experiment.trial_key import trial_key
from harness.files import write_output
from harness.trial.spec import Mode, TrialResult
from harness.verbs.run import RunRequest, run_cell

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


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@request_options(RunRequest)
@option("--perfetto", metavar="FILE", help="A trace of the trial for ui.perfetto.dev.")
@telling_options("json", "quiet")
@click.pass_context
def run(ctx: click.Context, /, *, perfetto: str | None, **_: Any) -> None:
    """Run one cell once, in a fresh interpreter, and show all that was measured.

    Says nothing about noise: `gcbench compare` does.
    """
    how, request = telling(ctx), asked(RunRequest, ctx)
    if perfetto:
        _check_trace(perfetto, request.mode)
    with CommandLine(quiet=how.quiet) as caller:
        result = run_cell(request, caller)
    trial = result.trial
    if perfetto and trial is not None:
        _write_trace(perfetto, RunStore(request.output, result.name), trial)
    if trial is None:
        say(f"no result: {result.failure}")
    tell(result, how._replace(details=True, quiet=how.quiet or trial is None))
    if trial is None or trial.invalid:
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


def _write_trace(path: str, store: RunStore, trial: TrialResult) -> None:
    from harness.report.perfetto import perfetto_trace

    rows = store.load_rows(trial_key(1, 0, trial.cell, trial.mode))
    roles = [process.role for process in trial.processes]
    trace = perfetto_trace(rows, roles, trial.machine.python if trial.machine else "")
    write_output(path, trace, "--perfetto FILE")
