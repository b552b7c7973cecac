"""``gcbench explain``: what a step costs, line by line, and what makes the collector run."""

from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.explain.result import ExplainResult
from harness.verbs.explain import ExplainRequest, NothingCountedError, count_costs

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
  gcbench explain --engine sglang-hostpath --release 0.5.23 --against 0.5.12
      the same of SGLang
  gcbench explain --workload churn --every 25
      over a whole run in which requests come and go
  gcbench explain --engine vllm-hostpath --repo ~/vllm --against v0.33.0
      a vLLM checkout against one of its commits
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@request_options(ExplainRequest)
@telling_options("json", "image", "quiet", exported=ExplainResult)
@click.pass_context
def explain(ctx: click.Context, /, **_: Any) -> None:
    """Say which functions and lines a step's cost is made of, or which make the collector run.

    Counts bytecodes and tracked objects exactly: they add up to the metrics that `gcbench gate`
    judges. With --against they stand beside another version's; of several releases it says with
    which each function became dearer. --by collections looks at the young objects that each
    collection finds. Measures no times.
    """
    how, request = telling(ctx), asked(ExplainRequest, ctx)
    profiles = [name for name, _ in how.export if name != "markdown"]
    with CommandLine(quiet=how.quiet) as caller:
        if profiles and (request.by == "collections" or request.is_along):
            raise ValueError(
                f"--export {profiles[0]}: is of one version's functions, or two versions'; leave "
                "it out"
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
    tell(result, how._replace(details=True))
    if not result.is_complete:
        ctx.exit(ExitCode.INTERRUPTED)
