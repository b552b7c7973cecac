"""``gcbench doctor``: what would spoil a measurement on this machine, and how noisy it is."""

from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.completion import values_of
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import ValueList, given, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import Telling, tell, telling, telling_options
from harness.experiment.doctor_result import DoctorResult
from harness.experiment.known_noise import known_noise
from harness.experiment.noise_result import NoiseResult
from harness.experiment.ray.cluster import Cluster, WantedNodes
from harness.files import write_json
from harness.machine.describe import describe
from harness.machine.doctor import DoctorFinding, check_machine
from harness.report.again import report_command
from harness.report.header import machine_words
from harness.verbs.check_engine import check_engine
from harness.verbs.noise import NoiseRequest, measure_noise
from harness.verbs.request import made, spelled

EXAMPLES = """
\b
Examples:
  gcbench doctor
      what would spoil a measurement, within seconds and without any trial
  gcbench doctor --engine toy
      whether an engine keeps its contract, and what each part more would add
  gcbench doctor --noise
      the smallest change that a comparison can find here, in minutes
  gcbench doctor --noise --device null --gc disabled --rounds 28
      the same of the host path alone, without the collector
  gcbench doctor --cluster auto
      which nodes of a Ray cluster can measure, and why others cannot
  gcbench doctor --noise --cluster auto
      each node by itself, and which to leave out
"""

_OF_BOTH = ("cluster", "like", "output")


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@option("--noise", is_flag=True, help="Run equal trials against each other instead.", is_main=True)
@option(
    "--engine",
    type=ValueList(values_of("engine")),
    metavar="NAME",
    help="Look at an engine instead: what it breaks of its contract, and what it could add.",
    is_main=True,
)
@request_options(NoiseRequest)
@telling_options("json", "quiet")
@click.pass_context
def doctor(ctx: click.Context, /, *, noise: bool, engine: str | None, **_: Any) -> None:
    """Look at Python, torch, cores, other work, timers and memory; exit 3 if measuring is hopeless.

    With --engine, look at an engine instead, where its trials would run; exit 3 if it breaks its
    contract. With --noise, measure the machine's noise floor, which takes minutes. The options of
    `What to compare` and `Precision` are of that.
    """
    how, said = telling(ctx), given(ctx, NoiseRequest)
    if idle := next((name for name in said if not noise and name not in _OF_BOTH), ""):
        raise ValueError(f"{spelled(idle)}: says how noise is measured; give --noise, too")
    request = made(NoiseRequest, said)
    if engine and (noise or request.cluster):
        raise ValueError(f"--engine {engine}: is looked at by itself; leave the others out")
    if request.like and not request.cluster:
        raise ValueError(f"--like {request.like}: names a node of a cluster; give --cluster, too")
    with CommandLine(quiet=how.quiet) as caller:
        if noise:
            ctx.exit(_told(measure_noise(request, caller), how, request))
        if request.cluster:
            wanted = WantedNodes(like=request.like, noise=known_noise(request.output))
            findings = _node_findings(caller.cluster(request.cluster, wanted))
        else:
            findings = check_engine(engine) if engine else check_machine(request.output)
        result = DoctorResult(
            name="doctor", command=caller.command, machine=describe(), findings=findings
        )
    tell(result, how)
    if any(finding.level == "bad" for finding in findings):
        ctx.exit(ExitCode.NOT_MEASURED)


def _told(found: NoiseResult, how: Telling, request: NoiseRequest) -> ExitCode:
    if found.is_complete:
        tell(found, how, more=report_command(request.output, found.name))
        return ExitCode.MEASURED
    if how.json:
        write_json(how.json, found)
    is_interrupted = found.experiment is not None and not found.experiment.is_complete
    why = "interrupted, incomplete" if is_interrupted else "incomplete, not enough trials"
    say(
        f"{why}: {found.rounds} of {request.rounds} rounds measured and no noise floor; go on with "
        f"the same command and --resume {found.name}"
    )
    return ExitCode.INTERRUPTED if is_interrupted else ExitCode.NOT_MEASURED


def _node_findings(cluster: Cluster) -> list[DoctorFinding]:
    """Which nodes can measure, and why the others cannot."""
    machine = machine_words(cluster.identity.machine) if cluster.identity else ""
    unmeasured = cluster.unmeasured
    found = [
        DoctorFinding(
            "ok",
            node.name,
            f"{node.address}, {node.cpus:g} CPUs, {node.gpus:g} GPUs for Ray; "
            f"noise {'not measured' if node.name in unmeasured else 'measured'}; {machine}",
        )
        for node in cluster.nodes.values()
    ]
    advice = "gcbench measures on the others"
    return found + [
        DoctorFinding("warn", name, why, advice) for name, why in cluster.left_out.items()
    ]
