"""What one trial stamps, in arrays laid out beforehand: no tracked object is made while it runs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import PHASES, Delivered, Int64Array, StepEngine, StepOutput

_STAMPS = len(PHASES) + 1
STEP_COLUMNS = (
    "start",
    *PHASES,
    "delivered",
    "num_rows",
    "device_ns",
    "late_ns",
    "device_length_ns",
    "worst_gap_ns",
    "num_tokens",
    "in_flight",
    "took_ns",
    "waited_ns",
    "processing_ns",
)
_WIDTH = len(STEP_COLUMNS)
# A structured row would name them too, but takes three times as long to fill.
(
    _DELIVERED,
    _NUM_ROWS,
    _DEVICE,
    _LATE,
    _DEVICE_LENGTH,
    _WORST_GAP,
    _NUM_TOKENS,
    _IN_FLIGHT,
    _TOOK,
    _WAITED,
    _PROCESSING,
) = range(_STAMPS, _WIDTH)


class RequestStamps(NamedTuple):
    """A column a request: nanoseconds of `perf_counter_ns`, 0 where it has not happened.

    ``scheduled_ns``: when it was due. ``sent_ns``: when it reached the engine's door.
    ``queued_ns``: when the engine, between two steps, was given it.
    """

    scheduled_ns: Int64Array
    sent_ns: Int64Array
    queued_ns: Int64Array
    first_ns: Int64Array
    last_ns: Int64Array
    num_tokens: Int64Array
    finish_reason: NDArray[np.int8]


class Recorder:
    """Times a step once and charges all of its requests with it, whatever their representation.

    ``steps`` int64 ``[num_steps, len(STEP_COLUMNS)]``: the engine's stamps, the moment of
    delivery, rows, device times, the step's worst gap, its tokens, and the requests that the
    engine had been given and not finished when it began, how long the step took its caller,
    how long another program had the core, and how long the outputs that it brought took to make.
    ``gaps`` int64: every gap between two deliveries to a request.
    """

    def __init__(self, num_requests: int, max_gaps: int) -> None:
        def zeros() -> Int64Array:
            return np.zeros(num_requests, np.int64)

        self.requests = RequestStamps(
            scheduled_ns=zeros(),
            sent_ns=zeros(),
            queued_ns=zeros(),
            first_ns=zeros(),
            last_ns=zeros(),
            num_tokens=zeros(),
            finish_reason=np.full(num_requests, -1, np.int8),
        )
        self._steps = np.zeros((4096, _WIDTH), np.int64)
        self.num_steps = 0
        self._gaps = np.zeros(max_gaps, np.int64)
        self._num_gaps = 0

    @property
    def steps(self) -> Int64Array:
        """The steps so far."""
        return self._steps[: self.num_steps]

    @property
    def num_rows(self) -> Int64Array:
        """Rows of each step so far."""
        return self.steps[:, _NUM_ROWS]

    @property
    def gaps(self) -> Int64Array:
        """The gaps so far, in nanoseconds."""
        return self._gaps[: self._num_gaps]

    def step(
        self,
        engine: StepEngine,
        output: StepOutput,
        now_ns: int,
        in_flight: int,
        took_ns: int = 0,
        waited_ns: int = 0,
    ) -> None:
        """Stamp a step that has just returned."""
        if self.num_steps == len(self._steps):
            self._steps = np.concatenate([self._steps, np.zeros_like(self._steps)])
        row = self._steps[self.num_steps]
        row[:_STAMPS] = engine.phase_stamps
        row[_DELIVERED] = now_ns
        row[_NUM_ROWS] = output.num_rows
        row[_DEVICE] = output.device_ns
        row[_LATE] = output.late_ns
        row[_DEVICE_LENGTH] = int(output.device_seconds * 1e9)
        row[_IN_FLIGHT] = in_flight
        row[_TOOK] = took_ns
        row[_WAITED] = waited_ns
        self.num_steps += 1

    def delivery(self, delivered: Delivered, at_ns: int) -> None:
        """Stamp what the last step has brought, for each of the steps that it brought."""
        row = self._steps[self.num_steps - 1]
        row[_WORST_GAP] = max(row[_WORST_GAP], self._deliver(delivered, at_ns))
        row[_NUM_TOKENS] += np.add.reduce(delivered.num_tokens)
        row[_PROCESSING] += delivered.processing_ns

    def _deliver(self, delivered: Delivered, now_ns: int) -> int:
        """Stamp the requests; the worst gap, 0 where all were first tokens."""
        requests, index = self.requests, delivered.request_index
        requests.finish_reason[delivered.finished] = delivered.finish_reasons
        if not len(index):
            return 0
        last = requests.last_ns[index]
        requests.last_ns[index] = now_ns
        requests.num_tokens[index] += delivered.num_tokens
        fresh = last == 0
        if fresh.any():
            requests.first_ns[index[fresh]] = now_ns
            last = last[~fresh]
        if not len(last):
            return 0
        end = self._num_gaps + len(last)
        np.subtract(now_ns, last, out=self._gaps[self._num_gaps : end])
        self._num_gaps = end
        return now_ns - int(last.min())
