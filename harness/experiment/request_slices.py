"""A single run's requests in slices, which stand for rounds where there was only one.

Batch means: the requests are cut into stretches of equal number, and a stretch's mean is a
sample. Two runs of one schedule have the same requests in a slice, so slices are paired. Noise
that differs from run to run, such as a restart of the server, is in no slice.
"""

from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.experiment.result import ExperimentResult, MetricSamples
from harness.experiment.store import Columns, read_rows
from harness.metrics import METRICS
from harness.statistics.paired_ratio import MIN_ROUNDS

MOST_SLICES = 20
FEWEST_REQUESTS = 10
"""Completed requests in a slice: fewer make its mean an outlier's."""


def with_slices(result: ExperimentResult, folder: Path) -> ExperimentResult:
    """The result of a run of one cell in ``folder``, a sample a slice where there was one a run.

    Raises ValueError for too few completed requests, StoreError where rows cannot be read.
    """
    if len(result.cells) != 1:
        raise ValueError(
            f"{result.name} has no valid run: gcbench report {result.name} says why; measure again"
        )
    (path,) = (folder / "rows").glob("*-requests.parquet")
    requests = read_rows(path)
    samples = slices(requests)
    metrics = {
        name: MetricSamples(
            unit=METRICS[name].unit,
            direction=METRICS[name].direction,
            kind="timing",
            median=float(np.nanmedian(values)),
            samples=[None if np.isnan(each) else float(each) for each in values],
        )
        for name, values in samples.items()
    }
    # A server may choose other tokens each time: work is the same where there are as many.
    lengths = sha256(requests["num_tokens"].astype(np.int64).tobytes()).hexdigest()
    cell = msgspec.structs.replace(result.cells[0], metrics=metrics, tokens_sha256=[lengths])
    return msgspec.structs.replace(result, cells=[cell], decide=list(metrics))


def slices(requests: Columns) -> dict[str, NDArray[np.float64]]:
    """Float ``[num_slices]`` by metric, NaN where none of a slice's requests has a figure.

    ``requests``: `TrialRows.requests`. Latencies go by the requests' places in the schedule,
    throughput by the moments at which they ended. Raises ValueError for too few requests.
    """
    done = requests["finish_reason"] >= 0
    count = min(MOST_SLICES, int(done.sum()) // FEWEST_REQUESTS)
    if count < MIN_ROUNDS:
        raise ValueError(
            f"{int(done.sum())} requests completed, and a verdict needs "
            f"{MIN_ROUNDS * FEWEST_REQUESTS}: measure with --num-requests"
        )
    sent, first, last = (requests[f"{name}_ns"] / 1e9 for name in ("sent", "first", "last"))
    tokens = np.maximum(requests["num_tokens"], 1)
    ttft = np.where(done, first - sent, np.nan)
    tpot = np.where(done & (tokens > 1), (last - first) / np.maximum(tokens - 1, 1), np.nan)
    ended = np.sort(last[done])
    edges = np.linspace(0, len(ended), count + 1).astype(int)
    moments = np.concatenate([[sent[done].min()], ended[edges[1:] - 1]])
    return {
        "request_throughput": np.diff(edges) / np.diff(moments),
        "ttft_mean": _means(ttft, count),
        "tpot_mean": _means(tpot, count),
    }


def _means(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    parts = np.array_split(values, count)
    return np.array([np.nan if np.isnan(part).all() else np.nanmean(part) for part in parts])
