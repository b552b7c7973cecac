"""``gcbench releases``: an engine's host path, release by release, with no GPU."""

from typing import Any

import click

from engines.vllm.releases import PINNED, base_interpreter, known_versions, layer
from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.experiment.result import ExperimentResult
from harness.report.again import report_command
from harness.report.release_label import release_label
from harness.verbs.caller import Caller
from harness.verbs.releases import NoReleaseError, ReleasesRequest, measure_releases
from harness.verbs.vllm_versions import prepare_releases

EXAMPLES = f"""
\b
Examples:
  gcbench releases vllm --prepare
      make the environment for vLLM {PINNED} that --engine vllm then uses
  gcbench releases vllm 0.11.0 0.11.2 0.12.0 {PINNED}
      each release's collections, pauses and host time, exactly and timed
  gcbench releases vllm 0.11.0 0.11.1 all --last-patches --gc as_is,default
      the last patch of each minor version since 0.10.0, and two more
  gcbench releases vllm 0.11.2..0.13.0 --image releases.png
      each release in this range, and a chart of their young collections
  gcbench explain --engine vllm-hostpath --release 0.13.0.. --last-patches
      which function made a step dearer, and with which release it came
  gcbench releases vllm 0.11.2 0.12.0 --worker process
      what crosses to a worker process, before and after vLLM #29121
  gcbench releases vllm --vllm-path ~/vllm --axis engine-core=process
      a working tree, with its engine core in a process of its own
  gcbench releases vllm --list
      the releases there are
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("engine", type=click.Choice(["vllm"]))
@click.argument("versions", nargs=-1)
@request_options(ReleasesRequest)
@option(
    "--prepare",
    is_flag=True,
    help="Make the environments only, and say where they are.",
    is_main=True,
)
@option("--list", "list_only", is_flag=True, help="List the releases there are.", is_main=True)
@telling_options("json", "image", "quiet", exported=ExperimentResult)
@click.pass_context
def releases(ctx: click.Context, /, *, prepare: bool, list_only: bool, **_: Any) -> None:
    """Measure the host path of ENGINE's releases VERSIONS, each in an environment of its own.

    An environment is made once and kept: a release's Python files over one installation of
    torch and the newest dependencies. A release that cannot be had or imported is named and
    left out. VERSIONS are releases, ranges of them (0.10.2..0.12.0, both ends may be left out)
    or all; without any the pinned release is taken.
    """
    if list_only:
        click.echo("\n".join(known_versions()))
        return
    how, request = telling(ctx), asked(ReleasesRequest, ctx)
    with CommandLine(quiet=how.quiet) as caller:
        if prepare:
            ctx.exit(_prepared(request, caller))
        try:
            result = measure_releases(request, caller)
        except NoReleaseError:
            ctx.exit(ExitCode.NOT_MEASURED)
    tell(result, how._replace(details=True), more=report_command(request.output, result.name))
    if not result.is_complete:
        say(
            f"interrupted, incomplete; the trials are in {request.output / result.name}; the same "
            f"command and --resume {result.name} go on"
        )
        ctx.exit(ExitCode.INTERRUPTED)
    if not any(cell.samples for cell in result.cells):
        ctx.exit(ExitCode.NOT_MEASURED)


def _prepared(request: ReleasesRequest, caller: Caller) -> ExitCode:
    """Say where each release's environment is."""
    prepared, _ = prepare_releases(request.named().wanted(), caller)
    for release in prepared:
        click.echo(f"{release_label(release)}: {layer(release)}")
    if not prepared:
        return ExitCode.NOT_MEASURED
    click.echo(f"interpreter: {base_interpreter()}")
    return ExitCode.MEASURED
