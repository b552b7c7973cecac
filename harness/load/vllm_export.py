"""A run in the JSON that ``vllm bench serve --save-result --save-detailed`` writes.

Field by field as vllm/benchmarks/serve.py of vLLM has them at commit 009e6d4a1cd6 (main, 2026).
"""

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.openai.outcome import WHOLE, Outcome
from harness.load.measure import gaps_of, requests_of
from harness.load.observed import Observed
from harness.load.result import LoadResult
from harness.load.task import targets_of
from harness.trial.request_metrics import token_seconds

_NS = 1e9


def vllm_document(
    observed: Observed, result: LoadResult, now: datetime | None = None
) -> dict[str, Any]:
    """It; latencies named ``_ms`` are milliseconds, all other times seconds."""
    requests, responses = requests_of(observed), observed.responses
    done = responses.completed
    first, last, sent = (
        column / _NS for column in (requests.first_ns, requests.last_ns, requests.sent_ns)
    )
    ttft, latency = np.where(done, first - sent, 0.0), np.where(done, last - sent, 0.0)
    tokens = np.where(done, np.maximum(requests.num_tokens, 0), 0)
    tpot = token_seconds(requests.first_ns, requests.last_ns, requests.num_tokens)[done]
    duration = float(last[done].max() - sent[done].min()) if done.any() else 0.0
    per_second = 1 / duration if duration else 0.0
    backend = "openai-chat" if observed.asked.prompt_as == "chat" else "openai"
    if targets_of(observed.asked)[0].embeds:
        backend = "openai-embeddings"
    schedule = observed.schedule
    return {
        "date": f"{now or datetime.now():%Y%m%d-%H%M%S}",
        "endpoint_type": backend,
        "backend": backend,
        "label": "gcbench load",
        "model_id": observed.asked.model,
        "tokenizer_id": observed.asked.model,
        "num_prompts": schedule.num_requests,
        "request_rate": _rate(observed),
        "burstiness": observed.asked.burstiness,
        "max_concurrency": schedule.max_concurrency or None,
        "gcbench_invalid": result.trial.invalid,
        "duration": duration,
        "completed": int(done.sum()),
        "failed": int((~done).sum()),
        "total_input_tokens": result.prompt_tokens,
        "total_output_tokens": int(tokens.sum()),
        "request_throughput": int(done.sum()) * per_second,
        "request_goodput": result.goodput.per_second if result.goodput else None,
        "output_throughput": int(tokens.sum()) * per_second,
        "total_token_throughput": (result.prompt_tokens + int(tokens.sum())) * per_second,
        "input_lens": schedule.prompt_lens.tolist(),
        "output_lens": tokens.tolist(),
        "ttfts": ttft.tolist(),
        "itls": _itls(observed),
        "latencies": latency.tolist(),
        "start_times": sent.tolist(),
        "errors": _errors(observed),
        **_figures("ttft", ttft[done]),
        **_figures("tpot", tpot[~np.isnan(tpot)]),
        **_figures("itl", gaps_of(responses) / _NS),
        **_figures("e2el", latency[done]),
    }


def _rate(observed: Observed) -> float | str:
    """As it was asked for; of other arrivals, as it came out."""
    if observed.asked.request_rate:
        return observed.asked.request_rate
    seconds = observed.schedule.arrival_seconds
    span = float(np.ptp(seconds))
    return (len(seconds) - 1) / span if span else "inf"


def _itls(observed: Observed) -> list[list[float]]:
    responses = observed.responses
    ends = np.cumsum(responses.num_deliveries)[:-1]
    return [
        (np.diff(each) / _NS).tolist() if is_completed else []
        for each, is_completed in zip(
            np.split(responses.delivered_ns, ends), responses.completed, strict=True
        )
    ]


def _errors(observed: Observed) -> list[str]:
    responses = observed.responses
    return [
        "" if outcome in WHOLE else responses.messages.get(request, Outcome(outcome).name.lower())
        for request, outcome in enumerate(responses.outcome.tolist())
    ]


def _figures(name: str, seconds: NDArray[np.float64]) -> dict[str, float]:
    values = seconds * 1e3 if len(seconds) else np.zeros(1)
    return {
        f"mean_{name}_ms": float(values.mean()),
        f"median_{name}_ms": float(np.median(values)),
        f"std_{name}_ms": float(values.std()),
        f"p99_{name}_ms": float(np.percentile(values, 99)),
    }
