"""A run under load on one screen."""

import msgspec
from golden_text import assert_golden, reported
from small import process

from harness.axes import Cell
from harness.load.attribution import (
    CLIENT,
    LATE,
    REST,
    SERVER,
    Attribution,
    Cause,
    LongPause,
    OnTheWay,
)
from harness.load.result import LoadResult
from harness.load.task import Asked, ClientHealth
from harness.load.validity import Finding
from harness.trial.arrival_fidelity import SentArrivals
from harness.trial.spec import TrialResult

METRICS = {
    "request_throughput": 19.83,
    "output_throughput": 3966.0,
    "ttft_mean": 0.01312,
    "ttft_median": 0.0123,
    "ttft_p99": 0.0412,
    "ttft_from_schedule_median": 0.0125,
    "tpot_mean": 0.00712,
    "tpot_median": 0.00702,
    "tpot_p99": 0.0081,
    "itl_median": 0.007,
    "itl_gap_p99": 0.0141,
    "itl_max": 0.2531,
    "e2el_median": 1.41,
    "e2el_from_schedule_median": 1.4102,
}
TRIAL = TrialResult(
    cell=Cell(workload="chat", engine="openai"),
    mode="timing",
    seed=3,
    metrics=METRICS,
    processes=[],
    tokens_sha256="",
    finish_sha256="",
    interpreter="",
    code_root="",
    code_commit="",
    wall_seconds=50.41,
    delivered=SentArrivals(
        asked={"gaps' CV": 1.0},
        found={"gaps' CV": 1.01},
        wrong=[],
        late_median=90e-6,
        late_max=1.2e-3,
        between_steps=False,
    ),
)
CLIENTS = [
    ClientHealth(
        process=number,
        num_requests=500,
        seconds=50.0,
        cpu_share=share,
        waited_share=waited,
        stolen_share=0.013,
        voluntary_switches=9,
        involuntary_switches=3,
        num_ticks=5000,
        lag_p90=0.00006,
        lag_p95=0.0001,
        lag_p99=0.0002,
        lag_p999=0.002,
        lag_max=0.0043,
        num_pieces=100_000,
        num_bytes=10**7,
        collector=process(),
    )
    for number, share, waited in ((0, 0.31, 0.012), (1, 0.87, None))
]
BROKEN = "client process 1 was at work 87.0 % of the time, at most 80.0 %"
VALID = LoadResult(
    name="load-chat",
    trial=TRIAL,
    asked=Asked(urls=["http://localhost:8000"], model="opt-125m", client_processes=2),
    num_requests=1000,
    num_attempted=1000,
    num_completed=1000,
    outcomes={"completed": 1000},
    messages={},
    broken=[],
    clients=CLIENTS,
    num_pieces=200_000,
    prompt_tokens=48_000,
    server_collections={'gcbench:gc_collections_total{generation="2",process="engine"}': 3.0},
    scrapes=[],
    counted_by={"token_ids": 1000},
    notes=[],
)
INVALID = msgspec.structs.replace(
    VALID,
    trial=msgspec.structs.replace(TRIAL, invalid=BROKEN),
    num_attempted=1000,
    num_completed=988,
    outcomes={"completed": 988, "reset": 2, "rate_limited": 10},
    messages={"rate_limited": ["status 429: slow \x1b[31mdown"]},
    broken=[Finding(rule="CPU", limit="0.8 of a core", sentence=BROKEN)],
    server_collections={},
    counted_by={"usage": 980, "unknown": 8},
    notes=["Other guests of this machine's host took 1% of its cores' time."],
)


def cause(name, process="", pid=0, gaps=0, share=0.0, first_tokens=0, pauses=0):
    return Cause(
        cause=name,
        process=process,
        pid=pid,
        gaps=gaps,
        gap_seconds=200 * share,
        gap_share=share,
        first_tokens=first_tokens,
        first_token_seconds=0.1 * first_tokens,
        first_token_share=first_tokens / 4,
        pauses=pauses,
    )


ATTRIBUTED = msgspec.structs.replace(
    VALID,
    attribution=Attribution(
        num_gaps=199_000,
        slow_gaps=2_920,
        num_first_tokens=1000,
        slow_first_tokens=4,
        slack_seconds=0.0013,
        causes=[
            cause(SERVER, "VLLM::EngineCore", 4711, 1_792, 0.812, 2, 7),
            cause(SERVER, "vllm serve", 4700, 512, 0.083, 1, 2),
            cause(LATE, "client 1", gaps=100, share=0.01),
            cause(CLIENT, "client 1", gaps=4, share=0.001, pauses=1),
            cause(REST, gaps=512, share=0.094, first_tokens=1),
        ],
        pauses=[
            LongPause(
                process="VLLM::EngineCore",
                pid=4711,
                generation=2,
                start_ns=10**12,
                seconds=0.731,
                gaps=256,
                first_tokens=2,
            )
        ],
        processes=[
            OnTheWay(
                process="VLLM::EngineCore",
                pid=4711,
                collections=90,
                pause_seconds=2.1,
                long_pauses=7,
                felt=1.0,
                is_charged=True,
            ),
            OnTheWay(
                process="python -c",
                pid=4720,
                collections=31,
                pause_seconds=4.4,
                long_pauses=31,
                felt=0.03,
                is_charged=False,
            ),
        ],
        lost=3,
    ),
)


def test_what_made_streams_wait_stands_above_the_clients():
    assert_golden("load-attribution.txt", reported(ATTRIBUTED, details=True))


def test_a_valid_run_on_one_screen():
    assert_golden("load.txt", reported(VALID, details=True))


def test_an_invalid_run_says_so_first_and_still_shows_its_figures():
    assert_golden("load-invalid.txt", reported(INVALID, details=True))
