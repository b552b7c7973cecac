"""``gcbench load``: a schedule sent to an OpenAI-compatible server over HTTP."""

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from engines.openai.plain_get import first_model, get, wait_for
from engines.openai.request_body import check_key
from engines.openai.target import Target, parse_target
from engines.protocol import EngineDeadError
from harness.cli.exit_codes import ExitCode
from harness.cli.load_http_cost import load_http_cost
from harness.cli.load_options import (
    client_options,
    http_cost_options,
    output_options,
    question_options,
)
from harness.cli.load_progress import LoadProgress
from harness.cli.load_store import store_run
from harness.cli.options import anyway_option, refuse_given, take_workloads, workload_options
from harness.cli.progress import said_once
from harness.cli.sections import SectionCommand
from harness.cli.session import checked, checked_image, command_line
from harness.cli.tell import tell
from harness.collector.policy import parse_policy
from harness.experiment.lease import Lease
from harness.files import write_output
from harness.load.attribution import SlowWaits, attribute
from harness.load.log import load_log, save_log
from harness.load.measure import Wanted, measure, requests_of
from harness.load.observed import Observed
from harness.load.probed_server import check_log, collections_of
from harness.load.result import LoadResult
from harness.load.run import check, observe
from harness.load.task import Asked
from harness.load.vllm_export import vllm_document
from harness.machine.scratch import scratch_folder
from harness.report.image_file import image_suffix
from harness.report.stall_image import stall_image
from workloads.schedule import Schedule

_ANSWER_SECONDS = 10.0
_OF_HTTP_COST = {"http_cost", "axis", "rounds"}
_OF_BOTH = {
    "workload",
    "request_rate",
    "burstiness",
    "num_requests",
    "prompt_lens",
    "output_lens",
    "arrivals",
    "tokens_per_step",
    "priorities",
    "stop",
    "min_tokens",
    "respect_eos",
    "retain",
    "window",
    "time_scale",
    "skip_bad_rows",
    "seed",
    "json_path",
    "output",
    "quiet",
    "anyway",
}
"""Of a server's load and of what HTTP adds."""
EXAMPLES = """
\b
Examples:
  gcbench load http://localhost:8000 --request-rate 20 --num-requests 1000
      1,000 requests of the decode workload, 20 a second
  gcbench load http://localhost:8000 --workload chat --percentile 99
      a conversation's lengths; invalid with too few requests for a p99
  gcbench load https://example.com --max-concurrency 64 --standard-fields
      64 at a time, for a server that knows only the OpenAI API's own fields
  gcbench load http://localhost:8000 --probe pauses.jsonl
      which gap was whose pause; the server runs under gcbench probe --log
  gcbench load --replay run.log.npz --json -
      a run that --log has kept, computed again
  gcbench load --http-cost --axis representation=list_of_lists,flat_arrays
      what HTTP adds to the built-in engine, for two shapes of sampled tokens
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.argument("url", required=False)
@question_options
@workload_options
@http_cost_options
@client_options
@output_options
@anyway_option
@click.pass_context
def load(ctx: click.Context, /, url: str | None, *, http_cost: bool, **flags: Any) -> None:
    """Send a workload to an OpenAI-compatible server and measure what comes back.

    Invalid (exit status 3) where the client was the bottleneck: docs/load.md says when.

    --http-cost needs no server: it starts `gcbench serve` for each cell and asks it the same way.
    """
    _hide(flags["api_key"])
    if http_cost:
        if url is not None:
            raise ValueError(f"{url}: --http-cost serves the engine itself; leave the server out")
        refuse_given(ctx, _OF_HTTP_COST | _OF_BOTH, "says nothing with --http-cost; leave it out")
        asked = {name: flags[name] for name in ("axis", "rounds", *_OF_BOTH)}
        ctx.exit(load_http_cost(_with_arrivals(asked)))
    refuse_given(ctx, {"url", *flags} - _OF_HTTP_COST, "is of --http-cost; give that, too")
    json_path = checked(flags["json_path"], "--json")
    _check_files(flags)
    quiet = flags["quiet"]
    wanted = Wanted(flags["percentile"], flags["min_duration"], flags["max_error_rate"])
    replayed: Path | None = flags["replay_path"]
    if (url is None) == (replayed is None):
        raise click.UsageError("name a server, as http://HOST:PORT, or --replay FILE; not both")
    if replayed is not None:
        observed, workload, seed = load_log(replayed)
    else:
        assert url is not None
        observed, workload, seed = _observe(url, flags)
    result, slow = measure(observed, workload, seed, wanted), None
    if flags["probe_path"] is not None:
        result, slow = _attributed(observed, result, flags)
    if replayed is None:
        result = store_run(flags["output"], observed, result, slow, command_line())
        if flags["log_path"]:
            save_log(Path(flags["log_path"]), observed, workload, seed, flags["api_key"])
    if flags["export_vllm"]:
        document = msgspec.json.encode(vllm_document(observed, result))
        write_output(flags["export_vllm"], document, "--export-vllm FILE")
    tell(result, quiet=quiet, json=json_path, details=True)
    _end(ctx, observed, result)


def _check_files(flags: dict[str, Any]) -> None:
    """Refuse now what would be refused after the run."""
    for name, option in (
        ("export_vllm", "--export-vllm"),
        ("log_path", "--log"),
        ("perfetto_path", "--perfetto"),
    ):
        if flags[name] == "-":
            raise ValueError(f"{option} -: name a file")
        checked(flags[name], option)
    for name, option, module in (
        ("perfetto_path", "--perfetto", "harness.report.load_trace"),
        ("image_path", "--image", "matplotlib.figure"),
    ):
        if flags[name]:
            if flags["probe_path"] is None:
                raise ValueError(f"{option}: shows pauses beside gaps; give --probe FILE, too")
            import_module(module)  # its package may be missing
    checked_image(flags["image_path"])


def _attributed(
    observed: Observed, result: LoadResult, flags: dict[str, Any]
) -> tuple[LoadResult, SlowWaits]:
    """The result with what made slow waits, by the log of the server's collections."""
    collections, notes = collections_of(flags["probe_path"], observed)
    found, slow = attribute(observed, collections)
    if trace_path := flags["perfetto_path"]:
        from harness.report.load_trace import load_trace

        trace = load_trace(observed, requests_of(observed), collections, found, slow)
        write_output(trace_path, trace, "--perfetto FILE")
    if image_path := flags["image_path"]:
        if found.slow_gaps:
            suffix = image_suffix(Path(image_path))
            image = stall_image(observed, collections, found, slow, suffix)
            write_output(image_path, image, "--image FILE")
        else:
            notes = [*notes, "No gap was slow, so --image had nothing to draw."]
    notes = [*result.notes, *notes]
    return msgspec.structs.replace(result, attribution=found, notes=notes), slow


def _end(ctx: click.Context, observed: Observed, result: LoadResult) -> None:
    if observed.is_interrupted:
        raise KeyboardInterrupt
    if not result.is_valid:
        ctx.exit(ExitCode.NOT_MEASURED)


def _observe(url: str, flags: dict[str, Any]) -> tuple[Observed, str, int]:
    """Ask the server. Raises ValueError for what cannot be asked, EngineDeadError where it is not
    there.
    """
    target = parse_target(url, flags["ca_file"], insecure=flags["insecure"])
    api_key = check_key(flags["api_key"])
    name, schedule = _schedule(flags)
    parse_policy(flags["client_gc"])
    asked = Asked(
        url=target.url,
        model=flags["model"],
        client_gc=flags["client_gc"],
        extra_body=_extra_body(flags["extra_body"]),
        **{
            field: flags[field]
            for field in (
                "prompt_as",
                "vocab_size",
                "standard_fields",
                "request_timeout",
                "client_processes",
                "num_warmups",
                "ca_file",
                "insecure",
            )
        },
    )
    check(schedule, asked)
    asked = msgspec.structs.replace(asked, model=_model(target, flags, api_key))
    if flags["probe_path"] is not None:
        check_log(flags["probe_path"], target)  # of a server that is there by now
    lease = Lease(flags["anyway"])
    console = Console(stderr=True)
    with (
        scratch_folder() as folder,
        lease.hold(said_once(console)),
        LoadProgress(schedule.num_requests, flags["quiet"]) as progress,
    ):
        observed = observe(
            schedule,
            asked,
            target,
            folder,
            api_key=api_key,
            keep_pieces=bool(flags["log_path"]),
            look=progress.look,
            watch_loop=bool(flags["log_path"] or flags["probe_path"]),
        )
    return observed, name, flags["seed"]


def _model(target: Target, flags: dict[str, Any], api_key: str) -> str:
    """The model to name, once the server is there. Raises EngineDeadError where it is not."""
    seconds = flags["wait_for"]
    if seconds and not wait_for(target, seconds, api_key):
        raise EngineDeadError(f"{target.url} was not well within {seconds:g} s (--wait-for)")
    try:
        if flags["model"]:
            get(target, "/health", _ANSWER_SECONDS, api_key)
            return str(flags["model"])
        return first_model(target, api_key)
    except OSError as error:
        raise EngineDeadError(
            f"{target.url} cannot be reached: {error.strerror or error}; start the server, or "
            "give it time with --wait-for SECONDS"
        ) from error


def _schedule(flags: dict[str, Any]) -> tuple[str, Schedule]:
    """The workload's name and what it is with the flags that stand in its place."""
    flags = _with_arrivals(flags)
    (workload,) = take_workloads({"workload": [flags.pop("workload")]}, flags)
    schedule = workload.realise(flags["seed"])
    cap = flags.pop("max_concurrency")
    if cap is not None:
        schedule = replace(schedule, max_concurrency=cap)
    return workload.name, schedule


def _with_arrivals(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with the rate as arrivals."""
    flags = dict(flags)
    rate, burstiness = flags.pop("request_rate"), flags.pop("burstiness")
    if burstiness is not None and rate is None:
        raise ValueError("--burstiness: is of --request-rate; give that too")
    if rate is not None:
        if flags["arrivals"] is not None:
            raise ValueError("--request-rate and --arrivals both say when requests come; give one")
        flags["arrivals"] = (
            f"poisson:{rate}" if burstiness is None else f"gamma:{rate}:{burstiness}"
        )
    return flags


def _extra_body(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"--extra-body: {error}; give a JSON object") from None


def _hide(api_key: str) -> None:
    """Take the key out of what this program says that it was called with, in locks and results."""
    if api_key:
        sys.argv[:] = [word.replace(api_key, "[API key]") for word in sys.argv]
