"""``gcbench doctor``: what would spoil a measurement on this machine, and how noisy it is."""

from pathlib import Path
from typing import Any

import click
import msgspec

from harness.axes import AXES
from harness.cli.cluster import cluster_at, node_findings
from harness.cli.exit_codes import ExitCode
from harness.cli.options import TRIAL_SECONDS, axis_options, output_option, refuse_given
from harness.cli.say import say
from harness.cli.session import Session, checked
from harness.cli.tell import tell
from harness.experiment.known_noise import keep_noise, known_noise
from harness.experiment.noise_result import noise_result
from harness.experiment.ray_cluster import WantedNodes
from harness.experiment.store import write_json
from harness.machine.doctor import check_machine
from harness.report.again import report_command
from harness.report.doctor import doctor_table
from harness.report.terminal import make_console
from harness.result.result import RESULT_FILE
from harness.statistics.paired_ratio import FEWEST_PAIRS

EXAMPLES = """
\b
Examples:
  gcbench doctor
      what would spoil a measurement, within seconds and without any trial
  gcbench doctor --noise
      the smallest change that a comparison can find here, in minutes
  gcbench doctor --noise --device null --gc disabled --rounds 28
      the same of the host path alone, without the collector
  gcbench doctor --cluster auto
      which nodes of a Ray cluster can measure, and why others cannot
  gcbench doctor --noise --cluster auto
      each node by itself, and which to leave out
"""

_AXES = {"workload", "device", "gc", "heap_objects"}
"""Those that change how noisy a machine is."""
_OF_BOTH = {"noise", "cluster", "like", "output", "json_path", "quiet"}


@click.command(epilog=EXAMPLES)
@click.option("--noise", is_flag=True, help="Run equal trials against each other instead.")
@click.option("--rounds", default=14, show_default=True, help="Interleaved rounds of them.")
@axis_options(without=AXES.keys() - _AXES)
@click.option("--resume", default="", metavar="NAME", help="Continue interrupted rounds.")
@click.option(
    "--wait-quiet",
    default="",
    metavar="TIME",
    help="Wait for a quiet machine, at most this long: 90s, 10m, 1h.",
)
@click.option(
    "--cluster", default="", metavar="ADDRESS|local", help="Look at a Ray cluster's nodes instead."
)
@click.option("--like", default="", metavar="NODE", help="At those of this one's machine class.")
@output_option("Results folder to look at; --noise keeps its trials there.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write what was found there.")
@click.option("--quiet", is_flag=True, help="No progress, no tables.")
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    noise: bool,
    cluster: str,
    like: str,
    output: Path,
    json_path: str | None,
    quiet: bool,
    **of_noise: Any,
) -> None:
    """Look at Python, torch, cores, other work, timers and memory; exit 3 if measuring is hopeless.

    With --noise, measure the machine's noise floor, which takes minutes. The options from --rounds
    to --wait-quiet are of that.
    """
    if like and not cluster:
        raise ValueError(f"--like {like}: names a node of a cluster; give --cluster, too")
    if noise:
        shared = {"cluster": cluster, "like": like, "output": output}
        ctx.exit(_measure(of_noise | shared | {"json_path": json_path, "quiet": quiet}))
    refuse_given(ctx, _OF_BOTH, "says how noise is measured; give --noise, too")
    checked(json_path, "--json")
    if cluster:
        wanted = WantedNodes(like=like, noise=known_noise(output))
        findings = node_findings(cluster_at(cluster, wanted))
    else:
        findings = check_machine(output)
    if json_path:
        write_json(json_path, [finding._asdict() for finding in findings])
    if json_path != "-" and not quiet:
        doctor_table(findings, make_console())
    if any(finding.level == "bad" for finding in findings):
        ctx.exit(ExitCode.NOT_MEASURED)


def _measure(flags: dict[str, Any]) -> ExitCode:
    """Two equal cells against each other, so that one knows what can be found here."""
    rounds, resume = flags["rounds"], flags["resume"]
    cluster, output = flags["cluster"], flags["output"]
    if rounds < FEWEST_PAIRS:
        raise ValueError(
            f"--rounds {rounds}: must be at least {FEWEST_PAIRS}: fewer give no interval"
        )
    unsaid = {"seed": 0, "anyway": False, "trial_timeout": TRIAL_SECONDS}
    session = Session(flags | unsaid, is_of_noise=True)
    cells = [msgspec.structs.replace(session.cell, copy=copy) for copy in (0, 1)]
    plan = session.plan(cells, rounds=rounds * session.machines, resume=resume)
    ran = session.run(plan)
    found = noise_result(ran, session.summarise(ran), is_resumed=bool(resume))
    write_json(session.runner.output / plan.name / RESULT_FILE, found)
    if not found.is_complete:
        session.write_json(found)
        why = "interrupted, incomplete" if ran.is_interrupted else "incomplete, not enough trials"
        say(
            f"{why}: {found.rounds} of {plan.rounds} rounds measured and no noise floor; go on "
            f"with the same command and --resume {plan.name}"
        )
        return ExitCode.INTERRUPTED if ran.is_interrupted else ExitCode.NOT_MEASURED
    if found.nodes and (of := cluster_at(cluster).identity):
        keep_noise(output, found.metric, of, found.nodes)
    tell(found, more=report_command(output, plan.name), **session.told)
    return ExitCode.MEASURED
