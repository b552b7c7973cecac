"""``gcbench bisect``: the commit with which an exact metric moved."""

from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.report.bisect import bisect_headline
from harness.tracking.bisect.result import BisectResult
from harness.verbs.bisect import BisectRequest, find_moving_commit

EXAMPLES = """
\b
Examples:
  gcbench bisect v0.1.0 --metric bytecodes_per_request_step
      the commit since this tag that changed how many bytecodes a step takes
  gcbench bisect HEAD~200 --metric leaked_objects_per_step --num-requests 64
      which of 200 commits leaves objects behind: about 10 trials of seconds
  gcbench bisect A B --engine vllm-hostpath --repo ~/vllm \\
          --metric bytecodes_per_request_step
      two commits of a vLLM checkout, with no GPU (make vllm first)
  gcbench bisect 0.11.0 0.20.0 --engine vllm-hostpath \\
          --metric gc_collections_gen0
      releases of vLLM; only those that are measured are downloaded
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("good")
@click.argument("bad", required=False)
@request_options(BisectRequest)
@telling_options("json", "quiet")
@click.pass_context
def bisect(ctx: click.Context, /, **_: Any) -> None:
    """Find the commit after GOOD, up to BAD, with which an exact metric moved.

    It counts about log2(N) + 2 of N commits, one trial each, and times nothing, so any machine
    will do. Only the engine's own package is taken from the commits; those that do not change it
    are not measured. BAD is HEAD if left out. With --engine vllm-hostpath or sglang-hostpath and
    without --repo both may be releases. Exit status: 0 found; 2 wrong usage; 3 nothing to find, or
    commits that had to be measured cannot be.
    """
    how = telling(ctx)
    with CommandLine(quiet=how.quiet) as caller:
        result = find_moving_commit(asked(BisectRequest, ctx), caller)
    if result.conclusion == "interrupted":
        say("interrupted; what is said is of the trials that had ended")
    tell(result, how._replace(details=True))
    if not how.shows_report and result.conclusion not in ("found", "interrupted"):
        say(bisect_headline(result))
    ctx.exit(_status(result))


def _status(result: BisectResult) -> ExitCode:
    if result.conclusion == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.MEASURED if result.conclusion == "found" else ExitCode.NOT_MEASURED
