"""What one trial stamps, in arrays laid out beforehand: no tracked object is made while it runs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import PHASES, Int64Array, StepEngine, StepOutput

_STAMPS = len(PHASES) + 1
STEP_COLUMNS = (
    "start", *PHASES, "delivered", "num_rows", "device_ns", "late_ns", "device_length_ns",
    "worst_gap_ns", "num_tokens", "in_flight", "took_ns", "waited_ns",
)  # fmt: skip
_WIDTH = len(STEP_COLUMNS)


class Requests(NamedTuple):
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
    engine had been given and not finished when it began, how long the step took its caller, and
    how long another program had the core. ``gaps`` int64: every gap between two
    deliveries to a request.
    """

    def __init__(self, num_requests: int, max_gaps: int) -> None:
        def zeros() -> Int64Array:
            return np.zeros(num_requests, np.int64)

        self.requests = Requests(
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
        return self.steps[:, STEP_COLUMNS.index("num_rows")]

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
        row[_STAMPS] = now_ns
        row[_STAMPS + 1] = len(output.request_index)
        row[_STAMPS + 2] = output.device_ns
        row[_STAMPS + 3] = output.late_ns
        row[_STAMPS + 4] = int(output.device_seconds * 1e9)
        row[_STAMPS + 5] = self._deliveries(output, now_ns)
        row[_STAMPS + 6] = np.add.reduce(output.num_tokens)
        row[_STAMPS + 7] = in_flight
        row[_STAMPS + 8] = took_ns
        row[_STAMPS + 9] = waited_ns
        self.num_steps += 1

    def _deliveries(self, output: StepOutput, now_ns: int) -> int:
        """Stamp the step's requests; the worst gap of the step, 0 where all were first tokens."""
        requests, index = self.requests, output.request_index
        requests.finish_reason[output.finished] = output.finish_reasons
        if not len(index):
            return 0
        last = requests.last_ns[index]
        requests.last_ns[index] = now_ns
        requests.num_tokens[index] += output.num_tokens
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
