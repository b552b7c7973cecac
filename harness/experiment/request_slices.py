"""A load's requests in slices: what differs within a single run.

Batch means: the requests are cut into stretches of equal number, and a stretch's mean is a
sample. Two runs of one schedule have the same requests in a slice, so slices are paired. What
differs from run to run, such as a server's next start, is in no slice, so slices decide nothing.
"""

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.experiment.result import ExperimentResult, MetricSamples
from harness.experiment.store import RowColumns, read_rows
from harness.metrics import METRICS
from harness.statistics.paired_ratio import MIN_ROUNDS
from harness.trial.request_metrics import token_seconds

MOST_SLICES = 20
FEWEST_REQUESTS = 10
"""Completed requests in a slice: fewer make its mean an outlier's."""


def with_slices(load: ExperimentResult, folder: Path) -> ExperimentResult:
    """A load with a sample a slice. Raises ValueError for too few completed requests."""
    (path,) = (folder / "rows").glob("*-requests.parquet")
    samples = slices(read_rows(path))
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
    cell = msgspec.structs.replace(load.cells[0], metrics=metrics)
    return msgspec.structs.replace(load, cells=[cell])


def slices(requests: RowColumns) -> dict[str, NDArray[np.float64]]:
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
    ttft = np.where(done, first - sent, np.nan)
    paced = token_seconds(*(requests[name] for name in ("first_ns", "last_ns", "num_tokens")))
    tpot = np.where(done, paced, np.nan)
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
