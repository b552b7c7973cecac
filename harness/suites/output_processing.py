"""What each mode of output processing costs, over vLLM's objects and text: interleaved rounds.

As in `serving` the device is modelled and `seconds_per_request` is what asv judges by. Text is
decoded, so that there is something to process beside the next step.
"""

from harness.suites.figures import Figures, figures
from harness.suites.grid import DECODE, tracked
from harness.suites.measure import measure_suite
from harness.suites.track import attributes, look_ups, one_sentence

_DEVICE = "modelled"
_MODES = ("inline", "overlapped", "thread", "process")
_METRICS = (
    "seconds_per_request",
    "ttft_median",
    "tpot_median",
    "device_idle_share",
    "output_processing_per_step",
)
_ROUNDS = 7  # asv's U test can tell seven samples from seven; with fewer it may never

TABLE = [
    tracked(
        metric,
        {"detokenizer": "decode_stream", "device": _DEVICE},
        handoff=("list_of_lists/vllm_v1",),
        output_processing=_MODES,
        workload=(DECODE,),
    )
    for metric in _METRICS
]

globals().update(look_ups("harness.suites.output_processing", TABLE))


@attributes(timeout=1800.0)
@one_sentence
def setup_cache() -> Figures:
    """Every time of the suite: one run of its grid."""
    cells = [TABLE[0].cell(point) for point in TABLE[0].points()]
    return figures(TABLE, [measure_suite("output-processing", cells, rounds=_ROUNDS)])
