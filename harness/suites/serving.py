"""How fast a commit serves, and what the collector costs it: seven interleaved rounds.

asv takes every rise for a loss, so what it judges by is ``seconds_per_request``;
``request_throughput`` is the same figure for people. The device is modelled: its wait is the
accelerator's, the host path is the real one. ``itl_p99`` is over the steps of all rounds together.
"""

from harness.suites.figures import Figures, figures, pooled_itl_p99
from harness.suites.grid import DECODE, Tracked, tracked
from harness.suites.measure import measure_suite
from harness.suites.track import attributes, look_ups, one_sentence

_DEVICES = ("modelled",)
_HANDOFFS = ("list_of_lists/per_request", "flat_arrays/columnar")
_ROUNDS = 7  # asv's U test can tell seven samples from seven; with fewer it may never


def _timed(metric: str, *policies: str) -> Tracked:
    return tracked(metric, {}, device=_DEVICES, handoff=_HANDOFFS, gc=policies, workload=(DECODE,))


_SPEED = [
    _timed(metric, "default", "disabled")
    for metric in (
        "seconds_per_request",
        "request_throughput",
        "tpot_median",
        "itl_p99",
        "itl_max",
        "host_time_per_step",
    )
]
_COLLECTOR = [_timed(metric, "default") for metric in ("gc_pause_share", "gc_effect")]
TABLE = [*_SPEED, *_COLLECTOR]

globals().update(look_ups("harness.suites.serving", TABLE))


@attributes(timeout=1800.0)
@one_sentence
def setup_cache() -> Figures:
    """Every time of the suite: one run of its grid."""
    cells = {point: _SPEED[0].cell(point) for point in _SPEED[0].points()}
    measured = measure_suite("serving", cells.values(), rounds=_ROUNDS)
    found = figures(TABLE, [measured])
    for point, cell in cells.items():
        if (p99 := pooled_itl_p99(measured, cell)) is not None:
            found["itl_p99", point] = p99
    return found
