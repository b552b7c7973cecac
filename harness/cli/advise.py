"""``gcbench advise``: which settings are best, whether their rules hold, and where they matter."""

from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import tell, telling, telling_options
from harness.experiment.advice import Advice
from harness.experiment.crossover import CrossoverResult
from harness.explain.cadence import CadenceResult
from harness.report.again import report_command
from harness.verbs.advise import give_advice
from harness.verbs.advise_request import MODELS, AdviseRequest

EXAMPLES = """
\b
Examples:
  gcbench advise
      collector settings for the built-in engine on a decode workload
  gcbench advise --engine vllm-hostpath --release 0.33.0 --device null
      the same for vLLM's host path, with no GPU
  gcbench advise --workload churn --representation list_of_lists,flat_arrays
      of two shapes, too, on requests that come and go
  gcbench advise --predict --axis python=3.11,3.12,3.13 --gc default
      how often each interpreter's collector runs, predicted and observed
  gcbench advise --models
      for which models and batches it matters how sampled tokens are kept
  gcbench advise --models --step-ms 18 --gc default,freeze --image map.png
      whether the collector does, for a model whose step takes 18 ms too
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@option(
    "--models",
    is_flag=False,
    flag_value=",".join(MODELS),
    metavar="[LIST]",
    help="Instead, say for which of these models, batches and heaps it matters what the host does: "
    f"names or .toml files of modelled devices.  [alone: {','.join(MODELS)}]",
    is_main=True,
)
@request_options(AdviseRequest)
@telling_options("json", "image", "quiet")
@click.pass_context
def advise(ctx: click.Context, /, **_: Any) -> None:
    """Find the best collector settings for a workload, and check them in a second measurement.

    The first cell is the baseline. The best of the others is measured again beside it, with other
    seeds, since the best of several is partly luck. One that never collects is not recommended.

    --predict and --models ask another question each, with defaults of their own for the axes.
    """
    how, request = telling(ctx), asked(AdviseRequest, ctx)
    if how.image and request.question != "models":
        raise ValueError("--image: is of --models; give that, too")
    with CommandLine(quiet=how.quiet) as caller:
        result = give_advice(request, caller)
    tell(result, how, more=report_command(request.output, result.name))
    if not result.is_complete:
        say("interrupted; what is said is of what had been measured")
    ctx.exit(_status(result))


def _status(result: Advice | CadenceResult | CrossoverResult) -> ExitCode:
    if not result.is_complete:
        return ExitCode.INTERRUPTED
    match result:
        case CadenceResult():
            has_measured = bool(result.cadences)
        case CrossoverResult():
            has_measured = bool(result.points)
        case Advice():
            verified = result.verified
            has_measured = bool(result.tried.comparisons) and not result.tried.missing
            if verified is not None:
                has_measured = has_measured and bool(verified.comparisons)
    return ExitCode.MEASURED if has_measured else ExitCode.NOT_MEASURED
