"""``gcbench doctor``: what this machine can do, and what would spoil a measurement on it."""

from pathlib import Path

import click

from harness.cli.cluster import cluster_at, node_findings
from harness.cli.exit_codes import ExitCode
from harness.cli.options import output_option
from harness.cli.session import checked
from harness.experiment.known_noise import known_noise
from harness.experiment.ray_cluster import Wanted
from harness.experiment.store import write_json
from harness.machine.doctor import check
from harness.report.lists import doctor_table
from harness.report.terminal import make_console

EXAMPLES = """
\b
Examples:
  gcbench doctor
  gcbench doctor --json -
  gcbench doctor --cluster auto
      which nodes of a Ray cluster can measure, and why others cannot
"""


@click.command(epilog=EXAMPLES)
@output_option("Results folder to look at.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the findings there.")
@click.option("--cluster", default="", metavar="ADDRESS|local", help="Look at its nodes instead.")
@click.pass_context
def doctor(ctx: click.Context, output: Path, json_path: str | None, cluster: str) -> None:
    """Look at Python, torch, cores, timers, load and memory; exit 3 if measuring is hopeless."""
    checked(json_path, "--json")
    if cluster:
        findings = node_findings(cluster_at(cluster, Wanted(noise=known_noise(output))))
    else:
        findings = check(output)
    if json_path:
        write_json(json_path, [finding._asdict() for finding in findings])
    if json_path != "-":
        doctor_table(findings, make_console())
    if any(finding.level == "bad" for finding in findings):
        ctx.exit(ExitCode.NOT_MEASURED)
