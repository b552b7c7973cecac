"""``gcbench explain``: what a step costs, line by line, and what makes the collector run."""

from collections.abc import Callable
from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import checked, tell, telling, telling_options
from harness.explain.exports.collapsed import collapsed_stacks
from harness.explain.exports.sarif import sarif_log
from harness.explain.exports.speedscope import speedscope_file
from harness.explain.exports.stacks import Count
from harness.explain.result import By, ExplainResult, FunctionsBody
from harness.files import write_output
from harness.verbs.explain import ExplainRequest, NothingCountedError, count_costs

_COUNTS: dict[By, Count] = {"bytecodes": "bytecodes", "objects": "allocations"}
_PROFILES = ("speedscope", "collapsed", "sarif")

EXAMPLES = """
\b
Examples:
  gcbench explain
      which functions and lines a decode step spends its bytecodes on
  gcbench explain --by collections
      which lines make the collector run, and how often
  gcbench explain --against main
      what the work tree as it stands does differently from main
  gcbench explain --engine vllm-hostpath --release 0.33.0 --against 0.13.0
      what made vLLM's host path dearer, with no GPU
  gcbench explain --engine vllm-hostpath --release 0.13.0.. --last-patches
      which function made a step dearer, and with which release it came
  gcbench explain --workload churn --every 25
      over a whole run in which requests come and go
  gcbench explain --engine vllm-hostpath --repo ~/vllm --against v0.33.0
      a vLLM checkout against one of its commits
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@request_options(ExplainRequest)
@option("--speedscope", metavar="FILE", help="Flame graphs for speedscope.app.", section="Output")
@option("--collapsed", metavar="FILE", help="Stacks for flamegraph.pl.", section="Output")
@option("--sarif", metavar="FILE", help="The dearer functions, for code review.", section="Output")
@telling_options("json", "image", "markdown", "quiet")
@click.pass_context
def explain(ctx: click.Context, /, **_: Any) -> None:
    """Say which functions and lines a step's cost is made of, or which make the collector run.

    Counts bytecodes and tracked objects exactly: they add up to the metrics that `gcbench gate`
    judges. With --against they stand beside another version's; of several releases it says with
    which each function became dearer. --by collections looks at the young objects that each
    collection finds. Measures no times.
    """
    how, request = telling(ctx), asked(ExplainRequest, ctx)
    profiles = {name: checked(ctx.params[name], f"--{name}") for name in _PROFILES}
    with CommandLine(quiet=how.quiet) as caller:
        if any(profiles.values()) and (request.by == "collections" or request.is_along):
            raise ValueError(
                f"--{next(filter(profiles.get, profiles))}: is of one version's functions, or two "
                "versions'; leave it out"
            )
        if how.image and not request.is_along:
            raise ValueError(
                "--image: draws several releases; name them, as in --release 0.32.0,0.33.0"
            )
        try:
            result = count_costs(request, caller)
        except NothingCountedError as error:
            if error.is_interrupted:
                say("interrupted before everything was counted")
                ctx.exit(ExitCode.INTERRUPTED)
            say(f"nothing to explain: {error}")
            ctx.exit(ExitCode.NOT_MEASURED)
    if isinstance(result.body, FunctionsBody):
        _write_profiles(result, result.body, profiles)
    tell(result, how._replace(details=True))
    if not result.is_complete:
        ctx.exit(ExitCode.INTERRUPTED)


def _write_profiles(
    result: ExplainResult, body: FunctionsBody, profiles: dict[str, str | None]
) -> None:
    writers: dict[str, Callable[[], bytes]] = {
        "speedscope": lambda: speedscope_file(result.name, body),
        "collapsed": lambda: collapsed_stacks(body.side.costs, _COUNTS[body.by]),
        "sarif": lambda: sarif_log(body),
    }
    for name, write in writers.items():
        if path := profiles[name]:
            write_output(path, write(), f"--{name} FILE")
