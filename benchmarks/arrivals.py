"""How do requests arrive, sent by the sender or between steps, and what does the sender cost?

First constant, Poisson and gamma arrivals, 200 a second, on a modelled Llama-3-8B on an H200:
10,000 by the sender, 3,000 between steps; then host time per request and step with Poisson
arrivals, 400 a second, on a modelled OPT-125m, where steps are short, both ways in turn.

    python -m benchmarks.arrivals

The last line of output is one JSON document.
"""

import gc
import json
from statistics import median

import msgspec

from engines.builtin.engine import Engine
from harness.axes import Cell
from harness.trial.arrival_fidelity import check_delivered
from harness.trial.client import TrialClient, warm_up
from harness.trial.clock import RealClock
from harness.trial.engine_config import engine_config
from harness.trial.observation import Observation
from harness.trial.sender import Sender
from workloads.arrival_check import check_arrivals
from workloads.recipe.arrivals import parse_arrivals
from workloads.recipe.lengths import parse_lengths
from workloads.schedule import Schedule
from workloads.workload import Workload

LLAMA = Cell(workload="arrivals", device="modelled", device_profile="llama-3-8b-h200")
OPT = Cell(workload="arrivals", device="modelled", device_profile="opt-125m-h200")
PROCESSES = ("constant:200", "poisson:200", "gamma:200:0.5")
PAIRS = 10
US = 1e6


def schedule(arrivals: str, num_requests: int) -> Schedule:
    """Prompts of 48 tokens, outputs of 64."""
    workload = Workload(
        name=arrivals,
        num_requests=num_requests,
        prompt_lens=parse_lengths("48"),
        output_lens=parse_lengths("64"),
        arrivals=parse_arrivals(arrivals),
    )
    return workload.realise(0)


def serve(of: Schedule, cell: Cell, has_sender: bool) -> Observation:
    """Serve a schedule; what was stamped."""
    engine = Engine(engine_config(cell, of))
    sender = Sender(of.arrival_seconds) if has_sender else None
    try:
        warm_up(engine, of, 64)
        gc.collect()
        client = TrialClient(engine, engine.step, of, RealClock(), arrivals=sender)
        client.run()
    finally:
        if sender is not None:
            sender.close()
        engine.shutdown()
    seen = client.recorder
    return Observation(
        schedule=of,
        requests=seen.requests,
        steps=seen.steps,
        gaps=seen.gaps,
        window_ns=1,
        events=[],
        processes=[],
        wire_bytes=0,
        wire_seconds={},
        scheduler_stats={},
        device_work={},
        watched={},
        peak_rss=0,
    )


def host_us(seen: Observation) -> float:
    """Host time per request and step."""
    return float(seen.host_ns.sum() / seen.column("num_rows").sum()) / 1e9 * US


def main() -> None:
    """Measure and print."""
    rows = []
    for process in PROCESSES:
        for has_sender, count in ((True, 10_000), (False, 3_000)):
            of = schedule(process, count)
            seen = serve(of, LLAMA, has_sender)
            found = check_arrivals((seen.requests.sent_ns - seen.requests.sent_ns[0]) / 1e9)
            words = check_delivered(of, seen.requests).words
            name = "sender" if has_sender else "between steps"
            print(f"{process}, {name}: {words}", flush=True)
            row = {"process": process, "by": name, "words": words, "requests": count}
            rows.append(row | msgspec.structs.asdict(found))
    costs: dict[bool, list[float]] = {True: [], False: []}
    of = schedule("poisson:400", 2_000)
    for turn in range(2 * PAIRS + 2):
        # There and back, so that a drift meets both; the first pair warms up.
        has_sender = turn % 4 in (0, 3)
        costs[has_sender].append(host_us(serve(of, OPT, has_sender)))
    ratios = [a / b for a, b in zip(costs[True][1:], costs[False][1:], strict=True)]
    print(
        f"host time per request and step: {median(costs[True][1:]):.3f} µs with the sender, "
        f"{median(costs[False][1:]):.3f} without; ratio {median(ratios):.3f} at the median, "
        f"{min(ratios):.3f} to {max(ratios):.3f} over {PAIRS} pairs"
    )
    print(json.dumps({"arrivals": rows, "host_us_sender": costs[True], "host_us": costs[False]}))


if __name__ == "__main__":
    main()
