"""``gcbench sites``: which lines make the objects for which the collector runs."""

from typing import Any

import click
from rich.console import Console

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.vllm.releases import layer
from gcbench.code_root import code_root
from harness.axes import values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, workload_options
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, command_line
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.store import write_json
from harness.explain.price import prices
from harness.explain.sites import BY_SITE, SitesResult, by_line, read_sites
from harness.machine.describe import describe
from harness.report.sites import describe_sites
from harness.report.terminal import make_console, print_report

EXAMPLES = """
\b
Examples:
  gcbench sites
      which lines of the built-in engine make the collector run
  gcbench sites --engine vllm-hostpath --release 0.11.0
      the same of vLLM's host path, with no GPU
  gcbench sites --workload churn --representation flat_arrays --rows 20
      of requests that come and go, with other shapes
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.option(
    "--rows",
    type=click.IntRange(1, 10**6),
    default=10,
    show_default=True,
    help="Lines that are shown.",
)
@axis_options(without=("python",), workload=["opt125m-48-300"], device=["null"], gc=["as_is"])
@workload_options
@run_options
@click.pass_context
def sites(ctx: click.Context, /, *, rows: int, **flags: Any) -> None:
    """Name the lines that make the objects for which the collector runs, and their types.

    Looks at the young objects at the start of each collection, in the process that serves the
    requests. Measures no times: `gcbench compare` does.
    """
    session = Session(flags | {"python": [""], "anyway": True}, is_prepared=True)
    cell, runner = session.cell, session.runner
    engine: EngineClass = ENGINES.load(cell.engine)
    name = runner.new_name("sites")
    ran = session.run(counting_plan(name, [cell], [BY_SITE], runner.schedule_hashes, runner.seed))
    trials = Trials(ran.plan, ran.outcomes)
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    if ran.is_interrupted:
        stderr.print("interrupted before everything was looked at")
        ctx.exit(ExitCode.INTERRUPTED)
    seen = read_sites(trials, cell)
    if isinstance(seen, str):
        stderr.print(f"gcbench: nothing to attribute: {seen}", markup=False)
        ctx.exit(ExitCode.NOT_MEASURED)
    root = str(layer(cell.release)) if engine.package == "vllm" else cell.release
    roots = [root, str(code_root())]
    adapter = "/".join(engine.__module__.split(".")[:-1])  # hands vLLM's tokens to vLLM
    result = SitesResult(
        name=name,
        command=command_line(),
        machine=describe(),
        workload=runner.workloads[0],
        axes=worth_mentioning(values(cell)),
        num_steps=seen.num_steps,
        roots=roots,
        found=seen.found,
        prices=prices(by_line(seen.found), roots, [engine.package, adapter]),
        notes=session.notes,
    )
    write_json(runner.output / name / "sites.json", result)
    session.write_json(result)
    if session.shows_tables:
        print_report(describe_sites(result, rows), make_console(), "", details=True)
