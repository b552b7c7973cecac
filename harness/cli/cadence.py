"""``gcbench cadence``: whether the collector runs when its rules say that it should."""

from typing import Any

import click

from harness.axes import values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, workload_options
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.grid import varying
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.result import cell_id
from harness.experiment.store import write_json
from harness.explain.cadence import CADENCE_MODES, Cadence, CadenceResult, read_cadence
from harness.not_measured import NotMeasured
from harness.result.result import RESULT_FILE

EXAMPLES = """
\b
Examples:
  gcbench cadence
      how often each policy makes the collector run, predicted and observed
  gcbench cadence --engine vllm-hostpath --release 0.33.0
      the same for vLLM's host path, with no GPU
  gcbench cadence --python 3.11,3.12,3.13 --gc default
      by the rules of each interpreter
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options(
    workload=["opt125m-48-300"], device=["null"], gc=["default", "threshold:10000/10/10", "freeze"]
)
@workload_options
@run_options
@click.pass_context
def cadence(ctx: click.Context, /, **flags: Any) -> None:
    """Predict how often the collector runs, and hold that against what it does.

    One trial follows the collector's count of young objects bytecode by bytecode. CPython's rules
    then say when each policy collects. Measures no times: `gcbench compare` does.
    """
    session = Session(flags | {"anyway": True})
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("cadence")
    ran = session.run(
        counting_plan(name, cells, CADENCE_MODES, runner.schedule_hashes, runner.seed)
    )
    trials, differing = Trials(ran.plan, ran.outcomes), varying(cells) or ["gc"]
    found = [read_cadence(trials, cell, cell_id(cell, differing)) for cell in cells]
    cadences = [each for each in found if isinstance(each, Cadence)]
    about = session.about(name)
    missing = [each.reason for each in found if isinstance(each, NotMeasured)]
    about["left_out"] = [*missing, *about["left_out"]]
    result = CadenceResult(
        **about,
        axes={
            axis: value
            for axis, value in worth_mentioning(values(cells[0])).items()
            if axis not in differing
        },
        cadences=cadences,
        notes=session.notes,
        is_complete=not ran.is_interrupted,
    )
    write_json(runner.output / name / RESULT_FILE, result)
    tell(result, **session.told)
    if ran.is_interrupted:
        say("interrupted before everything was counted")
        ctx.exit(ExitCode.INTERRUPTED)
    ctx.exit(ExitCode.MEASURED if cadences else ExitCode.NOT_MEASURED)
