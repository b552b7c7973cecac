"""``gcbench crossover``: from which batch, heap and model on a change of the host path matters."""

from typing import Any

import click

from engines.builtin.device.profile import load_profile
from harness.axes import AXES, values, worth_mentioning
from harness.cli.crossover_run import CrossoverRun, label
from harness.cli.exit_codes import ExitCode
from harness.cli.options import (
    PERCENT,
    CommaList,
    Number,
    axis_options,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.tell import refuse_files, tell
from harness.experiment.crossover import (
    CrossoverResult,
    constant_steps,
    model_steps,
    worth_checking,
)
from harness.experiment.grid import varying
from harness.experiment.store import write_json
from harness.machine.interrupts import held_interrupts
from harness.result.result import RESULT_FILE

EXAMPLES = """
\b
Examples:
  gcbench crossover
      for which models and batches does it matter how sampled tokens are kept
  gcbench crossover --representation flat_arrays --gc default,freeze
      the same question about the collector
  gcbench crossover --engine vllm-hostpath --gc default,freeze
      the same for vLLM's host path, with no GPU
  gcbench crossover --step-ms 18 --image map.png
      for a model whose step takes 18 ms; and a picture
"""

_FIXED = {
    "device": "null",
    "device_profile": "",
    "output_processing": "inline",
    "num_scheduler_steps": 1,
    "worker": "in-process",
    "wire": AXES["wire"].default,
    "wire_spin": AXES["wire_spin"].default,
    "engine_core": "in-process",
}
"""Host and device take turns in one process: only then does a step's time add to the host's."""

_MODELS = [
    "opt-125m-h200",
    "llama-3-8b-h200",
    "llama-3-70b-fp8-4xh100",
    "qwen3-235b-fp8-4xh100",
    "deepseek-v3-8xh200",
]


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options(
    without=tuple(_FIXED),
    workload=["churn"],
    representation=["list_of_lists", "flat_arrays"],
    delivery=["per_request", "columnar"],
    batch_size=[1, 8, 32, 256, 1024],
    heap_objects=[0, 700_000],
)
@workload_options
@click.option(
    "--device-profile",
    "profiles",
    type=CommaList(),
    default=_MODELS,
    metavar="LIST",
    help=f"Modelled devices: names or .toml files. [default: {','.join(_MODELS)}]",
)
@click.option(
    "--step-ms",
    type=Number(0, 10**6),
    multiple=True,
    metavar="MS",
    help="A model whose step takes so long; may be repeated.",
)
@click.option(
    "--rounds",
    type=click.IntRange(3, 10_000),
    default=5,
    show_default=True,
    help="Interleaved rounds at each point.",
)
@click.option(
    "--tolerance",
    type=PERCENT,
    default=2.0,
    show_default=True,
    metavar="PCT",
    help="What matters: a change of at least so much.",
)
@click.option(
    "--check",
    "num_checks",
    type=click.IntRange(0, 100),
    default=2,
    show_default=True,
    help="Predictions to try on a modelled device, at a batch between two others.",
)
@click.option("--image", "image_path", metavar="FILE", help="Draw the map, .png or .svg.")
@wait_quiet_option
@run_options
@click.pass_context
def crossover(
    ctx: click.Context,
    /,
    *,
    profiles: list[str],
    step_ms: tuple[float, ...],
    rounds: int,
    num_checks: int,
    image_path: str | None,
    **flags: Any,
) -> None:
    """Say for which batch, heap and model it matters what the host does.

    Measures the host path alone at each batch and heap, works out what a device's step leaves of
    the difference, and checks some of that on a modelled device. The first cell is the baseline.
    """
    tolerance = flags.pop("tolerance") / 100
    refuse_files(image=image_path)
    loaded = {name: load_profile(name) for name in profiles}
    run = CrossoverRun(
        flags | {axis: [value] for axis, value in _FIXED.items()}, rounds, num_checks
    )
    run.measure()
    schedules = run.schedules
    models = {given: model_steps(each, schedules) for given, each in loaded.items()}
    run.check(worth_checking(run.points, models, num_checks), loaded)
    cells = run.cells
    with held_interrupts():
        result = CrossoverResult(
            **run.first.about(run.name)
            | {"workloads": [each.runner.workloads[0] for each in run.sessions.values()]},
            axes={
                axis: value
                for axis, value in worth_mentioning(values(cells[0])).items()
                if axis not in {*varying(cells), *_FIXED, "workload"}
            },
            baseline=label(cells[0], cells),
            tolerance=tolerance,
            rounds=rounds,
            points=run.points,
            models=[
                *models.values(),
                *(constant_steps(each / 1e3, list(schedules)) for each in step_ms),
            ],
            checks=run.checks,
            notes=run.notes,
            is_complete=run.is_complete,
        )
        path = run.first.runner.output / result.name / RESULT_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, result)
        tell(result, image=image_path, **run.first.told)
    if not run.is_complete:
        say("interrupted; what is said is of what had been measured")
        ctx.exit(ExitCode.INTERRUPTED)
    ctx.exit(ExitCode.MEASURED if run.points else ExitCode.NOT_MEASURED)
