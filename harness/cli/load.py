"""``gcbench load``: a schedule sent to an OpenAI-compatible server over HTTP."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec

from engines.openai.request_body import check_key
from harness.axes import AXES
from harness.cli.caller import CommandLine
from harness.cli.dry_run import print_dry_run
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, given, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.tell import Telling, checked, tell, telling, telling_options
from harness.files import write_output
from harness.load.measure import requests_of
from harness.load.vllm_export import vllm_document
from harness.render.image_file import image_suffix
from harness.report.stall_image import stall_image
from harness.report.workload import workload_pairs
from harness.verbs.http_cost import HttpCostRequest, measure_http_cost
from harness.verbs.load import Loaded, ask_server, schedule_of, with_rate
from harness.verbs.load_request import LoadRequest
from harness.verbs.load_sweep import sweep_server
from harness.verbs.request import made
from workloads.summary import summarise_workload

EXAMPLES = """
\b
Examples:
  gcbench load http://localhost:8000 --request-rate 20 --num-requests 1000
      1,000 requests of the decode workload, 20 a second
  gcbench load http://localhost:8000 --workload chat --percentile 99
      a conversation's lengths; invalid with too few requests for a p99
  gcbench load https://example.com --max-concurrency 64 --standard-fields
      64 at a time, for a server that knows only the OpenAI API's own fields
  gcbench load http://localhost:8000 --sweep rate --goodput ttft:200,tpot:20
      where throughput ends, and up to which rate 99 % keep both objectives
  gcbench load http://localhost:8000 --prompts chats.json --prompt-as chat
      conversations of one's own, as ShareGPT has them
  gcbench load http://localhost:8000 --probe pauses.log
      which gap was whose pause; the server runs under gcbench probe --log
  gcbench load --replay run.log.npz --json -
      a run that --log has kept, computed again
  gcbench load --http-cost --axis representation=list_of_lists,flat_arrays
      what HTTP adds to the built-in engine, for two shapes of sampled tokens
"""


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("urls", metavar="[URL]...", nargs=-1)
@request_options(LoadRequest)
@option(
    "--http-cost",
    is_flag=True,
    help="Instead, serve the built-in engine, replay one schedule in process and over HTTP, and "
    "say what HTTP adds.",
    is_main=True,
)
@option(
    "--rounds",
    metavar="N",
    help="With --http-cost: times that each cell is measured both ways.  [default: 7]",
    section="Precision",
)
@option(
    "--api-key",
    envvar="OPENAI_API_KEY",
    show_envvar=True,
    default="",
    metavar="KEY",
    help="Stored nowhere.",
    section="Server",
)
@option(
    "--perfetto",
    metavar="FILE",
    help="With --probe: requests, slow gaps and collections as a trace for ui.perfetto.dev.",
    section="Output",
)
@option(
    "--export-vllm",
    metavar="FILE",
    help="The JSON that vllm bench serve --save-result writes.",
    section="Output",
)
@option(
    "--dry-run",
    is_flag=True,
    help="Ask nobody; show what would be sent, and a file that asks for it.",
    section="Output",
)
@telling_options("json", "image", "quiet")
@click.pass_context
def load(
    ctx: click.Context,
    /,
    *,
    http_cost: bool,
    rounds: str | None,
    api_key: str,
    dry_run: bool,
    **_: Any,
) -> None:
    """Send a workload to an OpenAI-compatible server and measure what comes back.

    Between several servers requests take turns; turns of a conversation stay with one.

    Invalid (exit status 3) where the client was the bottleneck: docs/load.md says when.

    --http-cost needs no server: it starts `gcbench serve` for each cell and asks it the same way.
    """
    _hide(api_key, *(each.partition(":")[2].strip() for each in ctx.params["header"] or ()))
    how = telling(ctx)
    if http_cost:
        ctx.exit(_http_cost(ctx, how, rounds))
    if rounds is not None:
        raise ValueError("--rounds: is of --http-cost; give that, too")
    request = asked(LoadRequest, ctx)
    files = {name: ctx.params[name] for name in ("perfetto", "export_vllm", "log")}
    _check_files(files | {"image": how.image}, request)
    if dry_run:
        print_dry_run(_asked_pairs(request), request)
        return
    if request.sweep:
        with CommandLine(quiet=how.quiet) as caller:
            swept = sweep_server(request, caller, check_key(api_key))
        tell(swept, how._replace(details=True))
        ctx.exit(ExitCode.MEASURED if swept.is_valid else ExitCode.NOT_MEASURED)
    with CommandLine(quiet=how.quiet) as caller:
        loaded = ask_server(request, caller, check_key(api_key))
    if files["export_vllm"]:
        document = msgspec.json.encode(vllm_document(loaded.observed, loaded.result))
        write_output(files["export_vllm"], document, "--export-vllm FILE")
    _write_pauses(loaded, files["perfetto"], how.image)
    tell(loaded.result, how._replace(details=True, image=None))
    if loaded.observed.is_interrupted:
        raise KeyboardInterrupt
    if not loaded.result.is_valid:
        ctx.exit(ExitCode.NOT_MEASURED)


def _asked_pairs(request: LoadRequest) -> list[tuple[str, str]]:
    """What a server would be asked, in words."""
    workload, schedule = schedule_of(request)
    return workload_pairs(summarise_workload(workload, schedule, request.seed))


def _http_cost(ctx: click.Context, how: Telling, rounds: str | None) -> ExitCode:
    """The other question; it takes what it shares with the first."""
    if ctx.params["urls"]:
        raise ValueError("--http-cost serves the engine itself; leave the URL out")
    said = given(ctx, LoadRequest)
    own = {*HttpCostRequest.__struct_fields__, *AXES, "request_rate", "burstiness"} - {"model"}
    flags = {param.name for param in ctx.command.params}
    if idle := next((name for name in said if name in flags and name not in own), ""):
        raise ValueError(f"--{idle.replace('_', '-')}: says nothing with --http-cost; leave it out")
    rate: dict[str, Any] = {
        name: said.pop(name) for name in ("request_rate", "burstiness") if name in said
    }
    if arrivals := with_rate(made(LoadRequest, rate)).arrivals:
        said["arrivals"] = arrivals
    if rounds is not None:
        said["rounds"] = rounds
    with CommandLine(quiet=how.quiet) as caller:
        result = measure_http_cost(made(HttpCostRequest, said), caller)
    tell(result, how)
    if not result.is_complete:
        return ExitCode.INTERRUPTED
    if result.missing:
        say(f"no round of {', '.join(result.missing)} could be used; the notes say why")
        return ExitCode.NOT_MEASURED
    return ExitCode.MEASURED


def _check_files(files: dict[str, str | None], request: LoadRequest) -> None:
    """Refuse now what would be refused after the run."""
    for name, path in files.items():
        flag = f"--{name.replace('_', '-')}"
        if path == "-":
            raise ValueError(f"{flag} -: name a file")
        checked(path, flag)
    for name, module in (("perfetto", "harness.report.load_trace"), ("image", "matplotlib.figure")):
        if files[name] and not (name == "image" and request.sweep):
            if request.probe is None:
                raise ValueError(f"--{name}: shows pauses beside gaps; give --probe FILE, too")
            import_module(module)  # its package may be missing


def _write_pauses(loaded: Loaded, perfetto: str | None, image: str | None) -> None:
    """The server's collections beside what they made wait."""
    observed, collections, slow = loaded.observed, loaded.collections, loaded.slow
    found = loaded.result.attribution
    if collections is None or slow is None or found is None:
        return
    if perfetto:
        from harness.report.load_trace import load_trace

        trace = load_trace(observed, requests_of(observed), collections, found, slow)
        write_output(perfetto, trace, "--perfetto FILE")
    if image and found.slow_gaps:
        suffix = image_suffix(Path(image))
        write_output(image, stall_image(observed, collections, found, slow, suffix), "--image FILE")
    elif image:
        say(f"--image {image}: not written, for no gap was slow")


def _hide(*secrets: str) -> None:
    """Take them out of what this program says that it was called with, in locks and results."""
    for secret in filter(None, secrets):
        sys.argv[:] = [word.replace(secret, "[API key]") for word in sys.argv]
