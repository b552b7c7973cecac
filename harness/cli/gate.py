"""``gcbench gate``: what a change costs, commit against commit, and whose doing it is."""

from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.flags import asked, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.status import gate_status
from harness.cli.tell import tell, telling, telling_options
from harness.report.again import report_command
from harness.tracking.gate.result import GateResult
from harness.verbs.gate import measure_commits
from harness.verbs.gate_request import GateRequest

EXAMPLES = """
\b
Examples:
  gcbench gate main
      the work tree as it stands, uncommitted changes included, against main
  gcbench gate HEAD~1 HEAD --exact-only
      exact counts alone, no times: on any machine
  gcbench gate HEAD^1 HEAD --exact-only --export markdown=gate.md
      in CI, where HEAD is the pull request merged into its branch
  gcbench gate v0.11.2 v0.12.0 --repo ~/vllm --engine vllm-hostpath
      two commits of a vLLM checkout, with no GPU (make vllm first)
  gcbench gate main --repo ~/sglang --engine sglang-hostpath --exact-only
      the work tree of an SGLang checkout against main (make sglang first)
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("base")
@click.argument("head", required=False)
@request_options(GateRequest)
@telling_options("details", "json", "image", "quiet", exported=GateResult)
@click.pass_context
def gate(ctx: click.Context, /, **_: Any) -> None:
    """Measure commit HEAD against BASE: exact counts first, then host time until it is precise.

    Only the engine's own package is taken from the commits; one harness measures both. Without
    HEAD it is the work tree as it stands. What HEAD may have worse is said at the end of a commit's
    message, as Gate-accepts: memory_peak_per_step +2 KiB, or in gate-accepts.toml. Exit status: 0
    same, better, accepted or not to be told; 1 worse, or a trade; 2 wrong usage; 3 where something
    could not be measured or a commit cannot run.
    """
    how, request = telling(ctx), asked(GateRequest, ctx)
    with CommandLine(quiet=how.quiet) as caller:
        result = measure_commits(request, caller)
    status = gate_status(result)
    tell(result, how, more=report_command(request.output, result.name), status=status)
    _say_what_is_missing(result)
    ctx.exit(status)


def _say_what_is_missing(result: GateResult) -> None:
    if not result.is_complete:
        say("interrupted; what is said is of the trials that had ended")
    elif not result.cells:
        for why in result.missing:
            say(f"nothing could be measured: {why}")
