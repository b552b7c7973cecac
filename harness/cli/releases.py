"""``gcbench releases``: an engine's host path, release by release, with no GPU."""

from typing import Any

import click

from engines.registry import ENGINES
from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.experiment.result import ExperimentResult
from harness.report.again import report_command
from harness.verbs.caller import Caller
from harness.verbs.release_sources import engine_named, lay_out_all
from harness.verbs.releases import NoReleaseError, ReleasesRequest, measure_releases

EXAMPLES = """
\b
Examples:
  gcbench releases vllm --prepare
      make the environment for vLLM 0.32.0 that --engine vllm then uses
  gcbench releases vllm 0.11.0 0.11.2 0.12.0 0.32.0
      each release's collections, pauses and host time, exactly and timed
  gcbench releases vllm 0.11.0 0.11.1 all --last-patches --gc as_is,default
      the last patch of each minor version since 0.10.0, and two more
  gcbench releases vllm 0.11.2..0.13.0 --image releases.png
      each release in this range, and a chart of their young collections
  gcbench explain --engine vllm-hostpath --release 0.13.0.. --last-patches
      which function made a step dearer, and with which release it came
  gcbench releases vllm 0.11.2 0.12.0 --worker process
      what crosses to a worker process, before and after vLLM #29121
  gcbench releases vllm --tree ~/vllm --axis engine-core=process
      a working tree, with its engine core in a process of its own
  gcbench releases vllm --list
      the releases there are
  gcbench releases toy v0.1..v0.4 --repo ~/toy
      the tags of an engine's repository
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("engine")
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

    ENGINE is the name of one or of the package that it runs. Releases of vLLM and SGLang come from
    the package index, those of an engine that says nothing of its releases are the tags of its
    repository, and any other commit there can be named. What is made for a release is kept; one
    that cannot be had or imported is named and left out. VERSIONS are releases, ranges of them
    (0.10.2..0.12.0, both ends may be left out) or all; without any the engine's pinned release is
    taken, or the newest tag.
    """
    how, request = telling(ctx), asked(ReleasesRequest, ctx)
    if list_only:
        click.echo("\n".join(request.source().known()))
        return
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
    """Say where each release's files are, and what runs them."""
    named = request.named()
    found, _ = lay_out_all(named.source(), named.wanted(), caller)
    for each in found.values():
        click.echo(f"{each.label}: {each.root}")
    if not found:
        return ExitCode.NOT_MEASURED
    engine = ENGINES.load(engine_named(request.engine))
    click.echo(f"interpreter: {engine.launch('', next(iter(found.values())).release).interpreter}")
    return ExitCode.MEASURED
