"""Both ends of output processing that is behind the scheduler.

The near end, `Beside`, knows which requests the scheduler's side has taken back meanwhile; the far
end, `LateProcessor`, which ones have ended by their text while the scheduler went on with them.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter_ns

import numpy as np

from engines.builtin.columns import with_rows
from engines.builtin.delivery.processor import OutputProcessor
from engines.builtin.delivery.stage import Processed, Stages, StepTokens
from engines.builtin.request_table import Request
from engines.protocol import BoolArray, Int64Array

MOST_PENDING = 4
"""Steps. Who is further behind makes the scheduler wait."""


class LateProcessor:
    """An `OutputProcessor` that drops the tokens of requests which have ended."""

    def __init__(self, stages: Stages) -> None:
        self._processor = OutputProcessor(stages)
        self._is_over = np.zeros(1, np.bool_)

    def add(self, request: Request) -> None:
        """Start a request's output, in a slot whose last owner is over."""
        self._is_over = with_rows(self._is_over, request.slot + 1)
        self._is_over[request.slot] = False
        self._processor.add(request)

    def remove(self, slot: int) -> None:
        """Let go of a request that was aborted, unless it had ended before."""
        if not self._is_over[slot]:
            self._is_over[slot] = True
            self._processor.remove(slot)

    def process(self, step: StepTokens) -> Processed:
        """Take a step through the stages; rows that were over have no tokens."""
        goes_on = ~self._is_over[step.slots]
        if goes_on.all():
            processed = self._processor.process(step)
        else:
            processed = _spread(step, goes_on, self._processor.process(_only(step, goes_on)))
        self._is_over[step.slots[processed.finished]] = True
        processed.ready_ns = perf_counter_ns()
        return processed


def _only(step: StepTokens, kept: BoolArray) -> StepTokens:
    """The step without some of its rows."""
    places = np.cumsum(kept) - 1
    finished = kept[step.finished]
    tokens, valid = step.tokens, kept
    if isinstance(tokens, np.ndarray):
        tokens = tokens[np.repeat(kept, step.num_tokens)]
    else:
        tokens = [tokens[place] for place in np.flatnonzero(kept).tolist()]
    if step.valid is not None:
        valid = step.valid.copy()
        valid[valid] = kept
    return StepTokens(
        step.slots[kept],
        step.request_index[kept],
        step.num_tokens[kept],
        places[step.finished[finished]].astype(np.int32),
        step.reasons[finished],
        tokens,
        valid,
        step.logprobs,
    )


def _spread(step: StepTokens, kept: BoolArray, processed: Processed) -> Processed:
    """What was made of some rows, as of all."""
    num_tokens = np.zeros(len(step.slots), np.int32)
    num_tokens[kept] = processed.num_tokens
    finished = np.flatnonzero(kept)[processed.finished].astype(np.int32)
    return replace(processed, step=step, num_tokens=num_tokens, finished=finished)


class Pending:
    """Steps that have been given away, the oldest first."""

    def __init__(self) -> None:
        self._steps: deque[tuple[StepTokens, Int64Array]] = deque()
        self._num_removed = np.zeros(1, np.int64)

    def __len__(self) -> int:
        """How many."""
        return len(self._steps)

    def add(self, request: Request) -> None:
        """Know the request's slot."""
        self._num_removed = with_rows(self._num_removed, request.slot + 1)

    def remove(self, slot: int) -> None:
        """What comes of this slot for steps that are under way is nobody's."""
        self._num_removed[slot] += 1

    def append(self, step: StepTokens) -> None:
        """One more is given away."""
        self._steps.append((step, self._num_removed[step.slots]))

    def returned(self, processed: Processed) -> Processed:
        """The oldest is back: without those rows that were taken back meanwhile."""
        step, num_removed = self._steps.popleft()
        processed.step = step
        kept = self._num_removed[step.slots] == num_removed
        if kept.all():
            return processed
        ends = kept[processed.finished]
        has_tokens = kept[processed.num_tokens > 0].tolist()
        return replace(
            processed,
            num_tokens=np.where(kept, processed.num_tokens, 0),
            finished=processed.finished[ends],
            reasons=processed.reasons[ends],
            outputs=[each for each, own in zip(processed.outputs, has_tokens, strict=False) if own],
            ended=[each for each, own in zip(processed.ended, ends, strict=False) if own],
        )


class Beside(ABC):
    """The near end of a mode that runs beside the scheduler, which goes on meanwhile."""

    is_exact = False
    num_under_way = 1
    most_pending = MOST_PENDING

    def __init__(self) -> None:
        self._pending = Pending()

    @property
    def num_pending(self) -> int:
        """Steps that have not come back."""
        return len(self._pending)

    def process(self, step: StepTokens) -> Sequence[Processed]:
        """Those that are ready. With `most_pending` others waits for the oldest."""
        self._pending.append(step)
        self.give(step)
        return self.wait() if len(self._pending) > self.most_pending else self._ready()

    def wait(self) -> Sequence[Processed]:
        """Those that are ready, once the oldest is."""
        if not len(self._pending):
            return ()
        oldest = self.take(wait=True)
        assert oldest is not None
        return [self._pending.returned(oldest), *self._ready()]

    def _ready(self) -> Sequence[Processed]:
        ready = []
        while len(self._pending) and (processed := self.take(wait=False)) is not None:
            ready.append(self._pending.returned(processed))
        return ready

    @abstractmethod
    def give(self, step: StepTokens) -> None:
        """Hand a step to the far end."""

    @abstractmethod
    def take(self, *, wait: bool) -> Processed | None:
        """The oldest step that the far end has done, None where there is none and nobody waits."""
