"""What looks on while an engine takes its steps, and what is counted of the full ones."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Delivered, Int64Array, StepOutput
from harness.collector.callers import CollectorCall
from harness.collector.sites import CollectionSites
from harness.trial.answers import Answers
from harness.trial.client import Streams, take
from harness.trial.long_run import LongRun
from harness.trial.messages import Messages
from harness.trial.output_hashes import OutputHashes, QualifiedName, RanFunction
from harness.trial.step_costs import CFunctionCost, StageCosts, StepCosts

_FULL = 0.95


class Extent(NamedTuple):
    """Which steps a watch that looks at some of them looks at.

    ``full_batch``: rows of a full one. ``every``: one step in so many of all steps, which one of
    them ``seed`` decides; 0: a few full ones. ``settings``: who has set the collector before.
    ``lines_of``: see `Trial`. ``left_behind``: see `ReadyEngine`.
    """

    full_batch: int
    every: int = 0
    seed: int = 0
    settings: Sequence[CollectorCall] = ()
    lines_of: Sequence[QualifiedName] = ()
    left_behind: int = 0


class StepWatch(Protocol):
    """Takes an engine's steps for the client, looking on."""

    @property
    def step(self) -> Callable[[], StepOutput]:
        """Takes the engine's next step."""
        ...

    @property
    def has_unfinished_requests(self) -> Callable[[], bool] | None:
        """Asks the engine, where that is watched."""
        ...

    def take(self, delivered: Delivered, streams: Streams | None) -> Sequence[Any]:
        """As `harness.trial.client.take`, looking on."""
        ...

    @property
    def calls(self) -> Sequence[CollectorCall]:
        """Who called the collector by hand in the window, where that is watched."""
        ...

    @property
    def messages(self) -> Sequence[Messages]:
        """What crossed to workers and back in the window, where that is watched."""
        ...

    @property
    def stages(self) -> StageCosts | None:
        """What each stage of the steps took in the window, where that is watched."""
        ...

    @property
    def costs(self) -> StepCosts | None:
        """What each function took in the window, where that is watched and a step was full."""
        ...

    @property
    def c_functions(self) -> Sequence[CFunctionCost]:
        """What each C function executed in the window, where that is watched."""
        ...

    @property
    def sites(self) -> CollectionSites | None:
        """Which lines made what collections found in the window, where that is watched."""
        ...

    @property
    def ran(self) -> Sequence[RanFunction]:
        """Functions that ran in the window, where that is watched."""
        ...

    @property
    def long_run(self) -> LongRun | None:
        """How often full passes come in the long run, where that is watched."""
        ...

    @property
    def young(self) -> bytes:
        """How the young count moved in the window, packed, where that is watched."""
        ...

    def window_opens(self) -> None:
        """The engine is warm and its collector set: from here on it counts."""
        ...

    def wants_more(self) -> bool:
        """Whether the schedule is to be served once more, the window open all the while."""
        ...

    def steps_end(self) -> None:
        """The last step is over; what is left unserved will be aborted."""
        ...

    def window_closes(self, answers: Answers) -> None:
        """All requests are gone; ``answers`` are what is still held of them."""
        ...

    def results(self, num_rows: Int64Array) -> dict[str, float | None]:
        """Metrics that only this watch can give, by name; ``num_rows`` ``[num_steps]``."""
        ...

    def outputs(self, path: str) -> OutputHashes | None:
        """What steps gave requests, where that is watched; its log is kept at ``path`` if any."""
        ...


class Watching:
    """A watch that does nothing before or after the steps."""

    has_unfinished_requests: Callable[[], bool] | None = None
    calls: Sequence[CollectorCall] = ()
    messages: Sequence[Messages] = ()
    stages: StageCosts | None = None
    costs: StepCosts | None = None
    c_functions: Sequence[CFunctionCost] = ()
    sites: CollectionSites | None = None
    ran: Sequence[RanFunction] = ()
    long_run: LongRun | None = None
    young = b""
    take = staticmethod(take)

    def window_opens(self) -> None:
        """Nothing."""

    def wants_more(self) -> bool:
        """Once is enough."""
        return False

    def steps_end(self) -> None:
        """Nothing."""

    def window_closes(self, answers: Answers) -> None:
        """Nothing."""

    def outputs(self, path: str) -> OutputHashes | None:
        """None."""
        return None


class StepLog:
    """A number a step, laid out beforehand so that writing it down keeps no memory.

    Room for 65,536 steps; those beyond it are not kept.
    """

    def __init__(self) -> None:
        self._values = np.zeros(1 << 16, np.int64)

    def write(self, step: int, value: int) -> None:
        """Keep a step's."""
        if step < len(self._values):
            self._values[step] = value

    def of_full_steps(self, num_rows: Int64Array) -> Int64Array:
        """The values of the full steps."""
        known = num_rows[: len(self._values)]
        return self._values[: len(known)][full_steps(known)]

    def mean_rise(self, num_rows: Int64Array, every: int = 1) -> float | None:
        """Per step, from the first full step that was written to the last; None without two.

        What a step keeps until the next is as much as it has rows: no fewer went before the first
        than before the last. ``every``: so many steps lie between two that were written.
        """
        known = num_rows[: len(self._values)]
        written = np.flatnonzero(full_steps(known)[::every]) * every
        if len(written):
            before = known[np.maximum(written - 1, 0)]
            written = written[before >= before[-1]]
        if len(written) < 2:
            return None
        first, last = written[0], written[-1]
        return float((self._values[last] - self._values[first]) / (last - first))


def full_steps(num_rows: Int64Array) -> NDArray[np.bool_]:
    """Which steps had at least 95 % of the rows of the fullest."""
    full: NDArray[np.bool_] = num_rows >= _FULL * num_rows.max(initial=1)
    return full
