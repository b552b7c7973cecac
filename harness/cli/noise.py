"""``gcbench noise``: equal cells against each other, so that one knows what can be found here."""

from typing import Any

import click
import msgspec
import numpy as np
from rich.console import Console

from harness.cli.cluster import cluster_at
from harness.cli.exit_codes import ExitCode
from harness.cli.options import (
    axis_options,
    cluster_options,
    image_option,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked_image
from harness.cli.tell import tell
from harness.experiment.known_noise import keep_noise
from harness.experiment.node_noise import node_noise
from harness.experiment.noise_result import NoiseResult, noise_result
from harness.experiment.outcomes import Trials
from harness.files import write_output
from harness.report.steps_image import samples_image
from harness.statistics.noise_floor import noise_floor
from harness.statistics.paired_ratio import FEWEST_PAIRS

EXAMPLES = """
\b
Examples:
  gcbench noise
      two equal cells of the decode workload, 14 rounds
  gcbench noise --device null --rounds 28
  gcbench noise --cluster auto
      each node of a Ray cluster by itself, and which to leave out
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options()
@workload_options
@click.option("--rounds", default=14, show_default=True, help="Interleaved rounds.")
@click.option("--decide", default="", metavar="METRIC", help="Metric to look at.")
@click.option("--resume", default="", metavar="NAME", help="Continue an interrupted run.")
@cluster_options
@image_option
@wait_quiet_option
@run_options
@click.pass_context
def noise(ctx: click.Context, /, image_path: str | None, **flags: Any) -> None:
    """Measure this machine's noise floor and the smallest change it can find (A/A runs)."""
    if flags["rounds"] < FEWEST_PAIRS:
        raise ValueError(
            f"--rounds {flags['rounds']}: must be at least {FEWEST_PAIRS}: fewer give no interval"
        )
    suffix = checked_image(image_path)
    cluster, output = flags["cluster"], flags["output"]
    session = Session(flags, is_of_noise=True)
    cells = [msgspec.structs.replace(session.cell, copy=copy) for copy in (0, 1)]
    plan = session.plan(cells, **flags | {"rounds": flags["rounds"] * session.machines})
    ran = session.run(plan)
    result = session.summarise(ran)
    metric = plan.decide[0]
    samples = [cell.metrics[metric].samples for cell in result.cells if metric in cell.metrics]
    if len(samples) < len(cells) or ran.is_interrupted:
        rounds = min((cell.samples for cell in result.cells), default=0)
        session.write_json(
            NoiseResult(
                name=plan.name, metric=metric, cells=len(cells), rounds=rounds, is_complete=False
            )
        )
        why = "interrupted, incomplete" if ran.is_interrupted else "incomplete, not enough trials"
        Console(stderr=True).print(
            f"gcbench: {why}: {rounds} of {plan.rounds} rounds measured and no noise floor; "
            f"go on with the same command and --resume {plan.name}",
            highlight=False,
            soft_wrap=True,
        )
        ctx.exit(ExitCode.INTERRUPTED if ran.is_interrupted else ExitCode.NOT_MEASURED)
    floor = noise_floor(np.array(samples, dtype=np.float64).T)
    pairs = Trials(plan, ran.outcomes).pairs(cells[0], cells[1], metric) if result.nodes else []
    found = noise_result(plan.name, metric, floor, result.surroundings, node_noise(metric, pairs))
    if found.nodes and (of := cluster_at(cluster).identity):
        keep_noise(output, metric, of, found.nodes)
    tell(found, **session.told)
    if image_path:
        write_output(image_path, samples_image(result, suffix), "--image FILE")
