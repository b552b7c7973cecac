"""How much a step gives the collector to do: exact counts on a device that takes no time.

Which collections a commit's hand-offs cause, what is alive in a step and left for good, what a
step allocates and how much Python it runs, and what a request costs beside its steps. Bytes across
the worker boundary come from cells with a worker process: those are not exact cells, but what
crosses does not depend on when, and the bytes repeat.
"""

from harness.metrics import METRICS
from harness.suites.figures import Figures, figures
from harness.suites.grid import CHURN, DECODE, HANDOFFS, tracked
from harness.suites.measure import measure_suite
from harness.suites.track import attributes, look_ups, one_sentence

_ALONE = {"device": "null"}
_ACROSS = {"device": "null", "worker": "process"}
_WORKLOADS = (DECODE, CHURN)
_POLICIES = ("default", "batch_threshold")
_BY_REQUEST = tuple(handoff for handoff in HANDOFFS if handoff.endswith("/per_request"))
_ACROSS_HANDOFFS = ("list_of_lists/per_request", "list_of_arrays/columnar", "flat_arrays/columnar")

_COLLECTIONS = [
    tracked(metric, _ALONE, handoff=HANDOFFS, gc=_POLICIES, workload=_WORKLOADS)
    for metric in (
        "gc_collections_gen0",
        "gc_collections_gen1",
        "gc_collections_gen2",
        "gc_collections_per_1000_steps",
    )
]
_PEAK = tracked("tracked_peak_per_step", _ALONE, handoff=HANDOFFS, workload=_WORKLOADS)
# By column next to nothing survives a step: a rise that may be below 0, where asv's ratios fail.
_SURVIVORS = tracked("tracked_survivors_per_step", _ALONE, handoff=_BY_REQUEST, workload=_WORKLOADS)
_LEFT = [
    tracked(metric, _ALONE, handoff=HANDOFFS, workload=_WORKLOADS)
    for metric in (
        "leaked_objects_per_step",
        "leaked_blocks_per_step",
        "cyclic_garbage_per_step",
        "explicit_collections",
    )
]
_KEPT = tracked("memory_kept_per_step", _ALONE, handoff=_BY_REQUEST, workload=(DECODE,))
_STEP = [
    tracked(metric, _ALONE, handoff=HANDOFFS, workload=(DECODE,))
    for metric in (
        "tracked_allocations_per_step",
        "bytecodes_per_request_step",
        "memory_peak_per_step",
        "handoff_bytes",
    )
]
# What an engine does once for a request hardly depends on the hand-off: the two ends are enough.
_REQUEST = [
    tracked(metric, _ALONE, handoff=(HANDOFFS[0], HANDOFFS[-1]), workload=(DECODE,))
    for metric, definition in METRICS.items()
    if definition.counted
]
_WIRE = tracked(
    "wire_bytes_per_step", _ACROSS, handoff=_ACROSS_HANDOFFS, wire=("pickle",), workload=(DECODE,)
)
TABLE = [*_COLLECTIONS, _PEAK, _SURVIVORS, *_LEFT, _KEPT, *_STEP, *_REQUEST, _WIRE]

globals().update(look_ups("harness.suites.collections", TABLE))


@attributes(timeout=1800.0)
@one_sentence
def setup_cache() -> Figures:
    """Every count of the suite: one run of its grid."""
    counted = _COLLECTIONS[0]
    cells = [counted.cell(point) for point in counted.points()]
    decode = [cell for cell in cells if cell.workload == DECODE]
    churn = [cell for cell in cells if cell.workload == CHURN]
    across = [_WIRE.cell(point) for point in _WIRE.points()]
    measured = [
        measure_suite("decode", decode, modes=("counts", "tracked", "memory", "leaks", "opcodes")),
        measure_suite("churn", churn, modes=("counts", "tracked", "leaks")),
        measure_suite("wire", across, rounds=1),
    ]
    return figures(TABLE, measured)
