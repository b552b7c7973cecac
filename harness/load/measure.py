"""From what was observed under load to its result: a function of the observation alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.openai.outcome import Outcome
from engines.openai.responses import Responses
from engines.protocol import FinishReason, Int64Array
from harness import format as fmt
from harness.axes import Cell
from harness.load.by_server import server_parts
from harness.load.distribution import distribution
from harness.load.goodput import goodput
from harness.load.observed import Observed
from harness.load.refusals import flag_for
from harness.load.result import LoadResult
from harness.load.server_metrics import collections_of_server
from harness.load.steady import steady_rate
from harness.load.token_counts import count_notes, count_sources
from harness.load.validity import Evidence, findings, lag_limit
from harness.metrics import METRICS
from harness.statistics.percentile import percentile_or_none
from harness.trial.answers import arrays_sha256, texts_sha256
from harness.trial.arrival_fidelity import check_delivered
from harness.trial.arrivals import comes_by_itself, nanoseconds
from harness.trial.observation import Values
from harness.trial.origin import origin
from harness.trial.recorder import RequestStamps
from harness.trial.request_metrics import gap_metrics, median_or_none, request_metrics
from harness.trial.spec import TrialResult

_MOST_MESSAGES = 3
_TAIL = 99


class Wanted(NamedTuple):
    """What a run must be long and large enough for: ``percentile`` (50: no more than there is)
    and ``min_duration`` in seconds; ``max_error_rate``: the share that may fail; ``objectives``:
    milliseconds at most by name, of good requests.
    """

    percentile: float = 50.0
    min_duration: float = 0.0
    max_error_rate: float = 0.01
    objectives: Mapping[str, float] = {}


def requests_of(observed: Observed) -> RequestStamps:
    """As an in-process trial records them; a request that failed has no finish reason."""
    recording, responses = observed.recording, observed.responses
    some = responses.num_deliveries > 0
    ends = np.cumsum(responses.num_deliveries)
    first, last = (np.zeros(len(ends), np.int64) for _ in range(2))
    first[some] = responses.delivered_ns[(ends - responses.num_deliveries)[some]]
    last[some] = responses.delivered_ns[ends[some] - 1]
    return RequestStamps(
        scheduled_ns=observed.start_ns + nanoseconds(observed.schedule.arrival_seconds),
        sent_ns=recording.sent_ns,
        queued_ns=recording.written_ns,
        first_ns=first,
        last_ns=last,
        num_tokens=responses.num_tokens,
        finish_reason=responses.finish_reason,
    )


def gaps_of(responses: Responses) -> Int64Array:
    """Nanoseconds between any two deliveries to one request, of the completed ones."""
    whose = np.repeat(np.arange(len(responses.outcome)), responses.num_deliveries)
    gaps = np.diff(responses.delivered_ns)
    counts = (whose[1:] == whose[:-1]) & responses.completed[whose[1:]]
    chosen: Int64Array = gaps[counts]
    return chosen


def measure(observed: Observed, workload: str, seed: int, wanted: Wanted) -> LoadResult:
    """What a run says, and whether it may be believed."""
    requests, responses = requests_of(observed), observed.responses
    gaps = gaps_of(responses)
    arrivals = check_delivered(observed.schedule, requests)
    values: Values = request_metrics(observed.schedule, requests) | gap_metrics(gaps)
    values |= {"itl_gap_p99": percentile_or_none(gaps / 1e9, 99)} | arrivals.metrics
    waited = (requests.queued_ns - requests.sent_ns)[responses.completed]
    values["connect_mean"] = float(waited.mean()) / 1e9 if len(waited) else None
    # Events that come together say nothing of how soon the next tokens may come.
    between = (median_or_none(gaps[gaps > 0]) or 0.0) / 1e9
    done = responses.completed
    seconds = (
        float(requests.last_ns[done].max() - requests.sent_ns[done].min()) / 1e9
        if done.any()
        else 0.0
    )
    broken = findings(
        Evidence(
            observed,
            requests,
            *_lateness(observed, requests),
            between,
            arrivals.sent,
            seconds,
            wanted.percentile,
            wanted.min_duration,
            wanted.max_error_rate,
        )
    )
    known = ((name, values[name]) for name in METRICS if name in values)
    trial = TrialResult(
        cell=Cell(workload=workload, engine="openai", model=observed.asked.model, gc="as_is"),
        mode="timing",
        seed=seed,
        metrics={name: None if value is None else float(value) for name, value in known},
        processes=[client.collector for client in observed.clients],
        **_hashes(responses),
        **origin("engines"),
        wall_seconds=seconds,
        delivered=arrivals.sent,
        engine_state={
            "prompt_as": observed.asked.prompt_as,
            "client_processes": observed.asked.client_processes,
            "real_answers": observed.asked.real_answers,
        },
        invalid="; ".join(finding.sentence for finding in broken),
    )
    return LoadResult(
        name=f"load-{workload}",
        trial=trial,
        asked=observed.asked,
        num_requests=observed.schedule.num_requests,
        num_attempted=int(responses.attempted.sum()),
        num_completed=int(done.sum()),
        outcomes=_outcomes(responses),
        messages=_messages(responses),
        broken=broken,
        clients=observed.clients,
        num_pieces=sum(client.num_pieces for client in observed.clients),
        prompt_tokens=int(responses.prompt_tokens[done].sum()),
        server_collections=collections_of_server(observed.scrapes),
        scrapes=observed.scrapes,
        counted_by=count_sources(responses),
        goodput=goodput(requests, dict(wanted.objectives), int(responses.attempted.sum()), seconds),
        by_server=server_parts(observed, requests),
        percentiles=distribution(requests, wanted.percentile),
        steady=steady_rate(observed, requests),
        notes=[
            *_notes(observed),
            *count_notes(responses, observed.schedule.output_lens),
            *_late_tail(observed, between, wanted),
        ],
        is_complete=not observed.is_interrupted,
    )


def _lateness(observed: Observed, requests: RequestStamps) -> tuple[NDArray[np.float64], float]:
    """Seconds by which requests that come by themselves were sent late, and their mean gap."""
    schedule = observed.schedule
    if not comes_by_itself(schedule) or len(schedule.previous_turn):
        return np.zeros(0), 0.0
    sent = requests.sent_ns > 0
    span = float(np.ptp(schedule.arrival_seconds))
    return (requests.sent_ns - requests.scheduled_ns)[sent] / 1e9, span / (len(sent) - 1)


def _outcomes(responses: Responses) -> dict[str, int]:
    counts = np.bincount(responses.outcome, minlength=max(Outcome) + 1)
    return {each.name.lower(): int(counts[each]) for each in Outcome if counts[each]}


def _messages(responses: Responses) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for request, message in responses.messages.items():
        kind = said.setdefault(Outcome(int(responses.outcome[request])).name.lower(), [])
        if message not in kind and len(kind) < _MOST_MESSAGES:
            kind.append(message)
    return said


def _hashes(responses: Responses) -> dict[str, Any]:
    """As an in-process trial's. Of token ids and texts there is none where none came."""
    ids = np.split(responses.token_ids, np.cumsum(responses.num_ids)[:-1])
    texts = np.split(responses.text, np.cumsum(responses.num_text)[:-1])
    return {
        "tokens_sha256": arrays_sha256(ids) if len(responses.token_ids) else "",
        "text_sha256": texts_sha256([each.tobytes().decode(errors="replace") for each in texts])
        if len(responses.text)
        else "",
        "finish_sha256": arrays_sha256([responses.finish_reason]),
        "lengths_sha256": arrays_sha256([responses.num_tokens]),
    }


def _late_tail(observed: Observed, between: float, wanted: Wanted) -> list[str]:
    """What is late in a valid run's tail, which a run for that percentile would be judged by."""
    worst = max((client.lag_p99 for client in observed.clients), default=0.0)
    if wanted.percentile >= _TAIL or worst <= lag_limit(between):
        return []
    return [
        f"The client's own loop lagged {fmt.seconds(worst)} at p99, which is in the p99 of gaps "
        f"and latencies: do not quote those. With --percentile {_TAIL} such a run is invalid."
    ]


def _notes(observed: Observed) -> list[str]:
    responses, schedule = observed.responses, observed.schedule
    early = (
        (responses.finish_reason == FinishReason.STOP)
        & (responses.num_tokens >= 0)
        & (responses.num_tokens < schedule.output_lens)
    )
    notes = []
    completed, attempted = int(responses.completed.sum()), int(responses.attempted.sum())
    if completed < attempted:
        notes.append(
            f"{attempted - completed:,} of {attempted:,} attempted requests failed: every figure "
            f"is of the {completed:,} completed ones.{_first_failure(responses)}"
        )
    if schedule.ignore_eos and early.any():
        why = (
            "--standard-fields leaves out ignore_eos"
            if observed.asked.standard_fields
            else "the server does not heed ignore_eos"
        )
        notes.append(
            f"{int(early.sum()):,} of {completed:,} answers ended before the length that the "
            f"workload asks for: {why}. Do not compare this run with one that did all the work."
        )
    notes += [*_reasoning(observed), *_turns(observed)]
    stolen = max((client.stolen_share for client in observed.clients), default=0.0)
    if stolen > 0.01:
        notes.append(f"Other guests of this machine's host took {stolen:.0%} of its cores' time.")
    return notes


def _first_failure(responses: Responses) -> str:
    """The whole of what the first one that said something said, and the flag that helps."""
    for request, message in responses.messages.items():
        if responses.attempted[request] and not responses.completed[request]:
            flag = flag_for(message)
            return f" The first says: {message.strip()}" + (f"; {flag}." if flag else "")
    return ""


def _turns(observed: Observed) -> list[str]:
    """What later turns were asked with, where real answers were wanted."""
    asked, responses, schedule = observed.asked, observed.responses, observed.schedule
    if not asked.real_answers:
        return []
    later = np.flatnonzero((schedule.previous_turn >= 0) & (observed.recording.sent_ns > 0))
    before = schedule.previous_turn[later]
    lacking = ~responses.completed[before]
    if asked.prompt_as == "ids":
        lacking |= responses.num_ids[before] == 0
    notes = []
    if lacking.any():
        notes.append(
            f"{fmt.count(int(lacking.sum()))} of {fmt.count(len(later))} later turns were asked "
            "with a stand-in, for the answer before had not come whole."
        )
    said = responses.completed & (responses.prompt_tokens > 0)
    if said.any():
        real = int(responses.prompt_tokens[said].sum())
        planned = int(schedule.prompt_lens[said].sum(dtype=np.int64))
        notes.append(
            f"Prompts have the server's own answers: {fmt.count(real)} tokens by usage, "
            f"{fmt.count(planned)} in the workload. Do not compare this run with one that was "
            "answered otherwise."
        )
    return notes


def _reasoning(observed: Observed) -> list[str]:
    """When answers themselves began that had reasoning before them."""
    requests, responses = requests_of(observed), observed.responses
    late = responses.completed & (responses.first_answer_ns > requests.first_ns)
    only = responses.completed & (responses.first_answer_ns == 0)
    notes = []
    if late.any():
        waited = np.median((responses.first_answer_ns - requests.sent_ns)[late]) / 1e9
        notes.append(
            f"{int(late.sum()):,} answers began with reasoning, which TTFT is of; the first token "
            f"of anything else came after {fmt.seconds(float(waited))} (median)."
        )
    if only.any():
        notes.append(f"{int(only.sum()):,} answers were reasoning and nothing else.")
    return notes
