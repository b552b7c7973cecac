"""A schedule sent to an OpenAI-compatible server over HTTP, and what came back."""

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from engines.openai.plain_get import first_model, get, wait_for
from engines.openai.request_body import check_header
from engines.openai.target import Target, parse_target
from engines.protocol import EngineDeadError
from harness.collector.policy import parse_policy
from harness.load.attribution import SlowWaits, attribute
from harness.load.goodput import parse_objectives
from harness.load.log import load_log, save_log
from harness.load.measure import Wanted, measure
from harness.load.observed import Observed
from harness.load.preflight import look_ahead, preflight_lines
from harness.load.probed_server import check_log, collections_of
from harness.load.prompt_file import read_prompts
from harness.load.result import LoadResult
from harness.load.run import check, observe
from harness.load.task import Asked
from harness.load.token_counts import with_tokenizer
from harness.machine.scratch import scratch_folder
from harness.probed.read_log import Collections, LogReader
from harness.verbs.caller import Caller
from harness.verbs.load_request import LoadRequest
from harness.verbs.load_store import store_run
from harness.verbs.quiet import lease_of
from harness.verbs.workloads import workloads_of
from workloads.schedule import Schedule
from workloads.workload import Workload

_ANSWER_SECONDS = 10.0


class Loaded(NamedTuple):
    """A run, and what it was made of.

    ``collections``: of the server's processes, where it was probed; ``slow``: the waits that were
    slow, and whose doing.
    """

    result: LoadResult
    observed: Observed
    collections: Collections | None = None
    slow: SlowWaits | None = None


def ask_server(request: LoadRequest, caller: Caller, api_key: str = "") -> Loaded:
    """Ask the server, or read a run again. ``api_key`` is stored nowhere.

    Raises ValueError for what cannot be asked, EngineDeadError where the server is not there.
    """
    if bool(request.urls) == (request.replay is not None):
        raise ValueError("name a server, as http://HOST:PORT, or --replay FILE; not both")
    wanted = Wanted(
        request.percentile,
        request.min_duration,
        request.max_error_rate,
        parse_objectives(request.goodput) if request.goodput else {},
    )
    log = LogReader(request.probe) if request.probe is not None else None
    if request.replay is not None:
        observed, workload, seed = load_log(request.replay)
    else:
        observed, workload, seed = _observe(request, caller, log, api_key), *_named(request)
    if request.tokenizer:
        counted = with_tokenizer(observed.responses, request.tokenizer)
        observed = observed._replace(responses=counted)
    result, collections, slow = measure(observed, workload, seed, wanted), None, None
    if log is not None:
        collections, notes = collections_of(log, observed)
        found, slow = attribute(observed, collections)
        notes = [*result.notes, *notes]
        result = msgspec.structs.replace(result, attribution=found, notes=notes)
    if request.replay is None:
        result = store_run(request.output, observed, result, slow, caller.command)
        if request.log is not None:
            save_log(request.log, observed, workload, seed, api_key)
    return Loaded(result, observed, collections, slow)


def _observe(request: LoadRequest, caller: Caller, log: LogReader | None, api_key: str) -> Observed:
    targets = [
        parse_target(url, request.ca_file, insecure=request.insecure) for url in request.urls
    ]
    if len({target.embeds for target in targets}) > 1:
        raise ValueError("some of the servers are asked for embeddings and others are not")
    _, schedule = schedule_of(request)
    parse_policy(request.client_gc)
    if request.real_answers and not len(schedule.previous_turn):
        raise ValueError(
            "--real-answers: no request of this workload is a later turn; --workload multi-turn "
            "has some"
        )
    own: dict[str, Any] = {
        "urls": [target.url for target in targets],
        "extra_body": _extra_body(request.extra_body),
    }
    if request.burstiness is None:
        own["burstiness"] = None if request.arrivals else 1.0
    own["headers"] = [check_header(each) for each in request.header]
    if request.prompts is not None:
        own["prompts"] = str(request.prompts)
        is_chat = any(isinstance(each, list) for each in read_prompts(request.prompts))
        if request.prompt_as == "ids" or (is_chat and request.prompt_as != "chat"):
            form = "chat" if is_chat else "text"
            raise ValueError(f"--prompts: holds no token ids; give --prompt-as {form}")
        if request.real_answers:
            raise ValueError("--prompts: gives each turn its own text; leave --real-answers out")
    same = (field for field in Asked.__struct_fields__ if field not in (*own, "prompts"))
    asked = Asked(**own, **{field: getattr(request, field) for field in same})
    check(schedule, asked)
    models = [_model(target, request, api_key) for target in targets]
    asked = msgspec.structs.replace(asked, model=models[0])
    if log is not None:
        check_log(log, targets[0])  # of a server that is there by now
    for target in targets if request.num_warmups else []:
        found = look_ahead(target, asked, schedule, api_key)
        for line in preflight_lines(found, asked, schedule):
            caller.say(f"{target.authority} {line}" if len(targets) > 1 else line)
        if asked.real_answers and asked.prompt_as == "ids" and not found.response.token_ids:
            raise ValueError(
                "--real-answers: the server sends no token ids to ask with; give --prompt-as chat"
            )
    with (
        scratch_folder() as folder,
        caller.load(schedule.num_requests) as progress,
        lease_of(request.wait).hold(progress.wait_for),
    ):
        observed = observe(
            schedule,
            asked,
            folder,
            api_key=api_key,
            keep_pieces=request.log is not None,
            look=progress.look,
            watch_loop=request.log is not None or request.probe is not None,
        )
    names = [each.partition(":")[0] for each in asked.headers]
    return observed._replace(asked=msgspec.structs.replace(asked, headers=names))


def _model(target: Target, request: LoadRequest, api_key: str) -> str:
    """The model to name, once the server is there. Raises EngineDeadError where it is not."""
    seconds = request.wait_for
    if seconds and not wait_for(target, seconds, api_key):
        raise EngineDeadError(f"{target.url} was not well within {seconds:g} s (--wait-for)")
    try:
        if request.model:
            get(target, "/health", _ANSWER_SECONDS, api_key)
            return str(request.model)
        return first_model(target, api_key)
    except OSError as error:
        raise EngineDeadError(
            f"{target.url} cannot be reached: {error.strerror or error}; start the server, or "
            "give it time with --wait-for SECONDS"
        ) from error


def _named(request: LoadRequest) -> tuple[str, int]:
    (workload,) = workloads_of([request.value("workload")], request)
    return workload.name, request.seed


def with_rate(request: LoadRequest) -> LoadRequest:
    """The request, with its rate as arrivals. Raises ValueError for what contradicts it."""
    rate, burstiness = request.request_rate, request.burstiness
    if burstiness is not None and rate is None:
        raise ValueError("--burstiness: is of --request-rate; give that too")
    if rate is None:
        return request
    if request.arrivals:
        raise ValueError("--request-rate and --axis arrivals both say when requests come; give one")
    arrivals = f"poisson:{rate}" if burstiness is None else f"gamma:{rate}:{burstiness}"
    return msgspec.structs.replace(request, arrivals=arrivals, request_rate=None, burstiness=None)


def schedule_of(request: LoadRequest) -> tuple[Workload, Schedule]:
    """The workload with what stands in its place, and what that comes to."""
    request = with_rate(request)
    (workload,) = workloads_of([request.value("workload")], request)
    schedule = workload.realise(request.seed)
    if request.max_concurrency is not None:
        schedule = replace(schedule, max_concurrency=request.max_concurrency)
    return workload, schedule


def _extra_body(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ValueError(f"--extra-body: {error}; give a JSON object") from None
