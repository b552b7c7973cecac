"""A run under load on one screen."""

import msgspec
from golden_text import assert_golden, printed
from small import process

from harness.axes import Cell
from harness.load.result import LoadResult
from harness.load.task import Asked, ClientHealth
from harness.load.validity import Finding
from harness.report.load import load_tables
from harness.trial.spec import TrialResult

METRICS = {
    "request_throughput": 19.83, "output_throughput": 3966.0, "ttft_mean": 0.01312,
    "ttft_median": 0.0123, "ttft_p99": 0.0412, "ttft_from_schedule_median": 0.0125,
    "tpot_mean": 0.00712, "tpot_median": 0.00702, "tpot_p99": 0.0081, "itl_median": 0.007,
    "itl_gap_p99": 0.0141, "itl_max": 0.2531, "e2el_median": 1.41,
    "e2el_from_schedule_median": 1.4102,
}  # fmt: skip
TRIAL = TrialResult(
    cell=Cell(workload="chat", engine="openai"), mode="timing", seed=3, metrics=METRICS,
    processes=[], tokens_sha256="", finish_sha256="", interpreter="", code_root="",
    code_commit="", wall_seconds=50.41,
    delivered="as scheduled: gaps' CV 1.01; 90 µs late at the median, 1.2 ms at most",
)  # fmt: skip
CLIENTS = [
    ClientHealth(
        process=number, num_requests=500, seconds=50.0, cpu_share=share, waited_share=waited,
        stolen_share=0.013, voluntary_switches=9, involuntary_switches=3, num_ticks=5000,
        lag_p90=0.00006, lag_p95=0.0001, lag_p99=0.0002, lag_p999=0.002, lag_max=0.0043,
        num_pieces=100_000, num_bytes=10**7,
        collector=process(),
    )
    for number, share, waited in ((0, 0.31, 0.012), (1, 0.87, None))
]  # fmt: skip
BROKEN = "client process 1 was at work 87.0 % of the time, at most 80.0 %"
VALID = LoadResult(
    trial=TRIAL, asked=Asked(url="http://localhost:8000", model="opt-125m", client_processes=2),
    num_requests=1000, outcomes={"completed": 1000}, messages={}, broken=[], clients=CLIENTS,
    num_pieces=200_000, prompt_tokens=48_000,
    server_collections={'gcbench:gc_collections_total{generation="2",process="engine"}': 3.0},
    scrapes=[], notes=[],
)  # fmt: skip
INVALID = msgspec.structs.replace(
    VALID,
    trial=msgspec.structs.replace(TRIAL, invalid=BROKEN),
    outcomes={"completed": 988, "reset": 2, "rate_limited": 10},
    messages={"rate_limited": ["status 429: slow \x1b[31mdown"]},
    broken=[Finding(rule="CPU", limit="0.8 of a core", sentence=BROKEN)],
    server_collections={},
    notes=["Other guests of this machine's host took 1% of its cores' time."],
)


def test_a_valid_run_on_one_screen():
    assert_golden("load.txt", printed(load_tables, VALID))


def test_an_invalid_run_says_so_first_and_still_shows_its_figures():
    assert_golden("load-invalid.txt", printed(load_tables, INVALID))
