"""A scheduler whose decisions cost nothing: those that it took for the same requests before."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from engines.builtin.kv_cache_manager import ReadTokenIds
from engines.builtin.request_table import Request, RequestTable
from engines.builtin.scheduler import Admitted, Scheduled, ScheduledStep, Scheduler
from engines.protocol import BoolArray, EngineConfig, Int32Array

_NOTHING = Scheduled(None, (), ())
_OTHER = (
    "this is another run than the recorded one; --axis scheduler=replayed is for requests that are "
    "scheduled alike each time"
)


class _Admission(NamedTuple):
    """Who got a row; see `Admitted`. Which it is follows from the order of all admissions."""

    request_index: int
    num_computed: int
    chunk: int


class _Decision(NamedTuple):
    """What scheduling came to once. ``preempted``: rows; ``num_held``: rows that were held before;
    ``queries`` and ``hits``: tokens looked up in the prefix cache, and found.
    """

    step: ScheduledStep | None
    admitted: tuple[_Admission, ...]
    preempted: tuple[int, ...]
    num_held: int
    queries: int
    hits: int


class ReplayedScheduler(Scheduler):
    """Decides for itself until it has rehearsed, then once more what it decided then.

    It stands for a scheduler in C++: what is left is what such a one leaves to Python, the queue
    of requests and the table of their rows. `schedule` and `add` raise ValueError where the run is
    another than the recorded one.
    """

    needs_rehearsal = True

    def __init__(
        self, config: EngineConfig, num_blocks: int, table: RequestTable, token_ids: ReadTokenIds
    ) -> None:
        super().__init__(config, num_blocks, table, token_ids)
        self._decisions: list[_Decision] = []
        self._known: set[int] = set()
        self._next = 0
        self._is_recording = False
        self._replays = False

    def rehearse(self, serve: Callable[[], object]) -> None:
        """Record what is decided while ``serve`` serves; the next run is given the same."""
        table = self.table
        # Not the integers themselves, which recorded steps keep: others would seem to leak.
        free_rows, epoch = np.array(table.free_rows), table.epoch.copy()
        self._decisions.clear()
        self._known.clear()
        self._is_recording = True
        try:
            serve()
        finally:
            self._is_recording = False
        # Rows are taken in the recorded order, and a step names the epochs of that time.
        table.free_rows[:] = free_rows.tolist()
        table.epoch[:] = epoch
        self._next = 0
        self._replays = True

    @property
    def num_running(self) -> int:
        """Requests that hold a row."""
        return len(self.table.row_of)

    @property
    def _is_idle(self) -> bool:
        return not self.num_running and not self.waiting

    def add(self, request: Request) -> None:
        """Queue a request; behind the recorded run, or what is left of it, any other."""
        if self._is_recording:
            self._known.add(request.request_index)
        if self._replays:
            is_known = request.request_index in self._known
            if self._is_idle and not (is_known and self._next < len(self._decisions)):
                self._replays = False
            elif not is_known:
                raise ValueError(f"request {request.request_index}: {_OTHER}")
        super().add(request)

    def schedule(self) -> Scheduled:
        """The next step."""
        if self._is_idle:
            return _NOTHING  # neither recorded nor replayed: an abort may leave any number of these
        if self._is_recording:
            return self._recorded()
        return self._replayed() if self._replays else super().schedule()

    def _recorded(self) -> Scheduled:
        num_held, before = self.num_running, self.stats()
        step, admitted, preempted = scheduled = super().schedule()
        after = self.stats()
        decision = _Decision(
            step,
            tuple(
                _Admission(each.request.request_index, each.num_computed, each.chunk)
                for each in admitted
            ),
            tuple(row for row, _ in preempted),
            num_held,
            after["prefix_cache_queries"] - before["prefix_cache_queries"],
            after["prefix_cache_hits"] - before["prefix_cache_hits"],
        )
        self._decisions.append(decision)
        return scheduled

    def _replayed(self) -> Scheduled:
        number = self._next
        decision = self._decisions[number] if number < len(self._decisions) else None
        if decision is None or decision.num_held != self.num_running:
            raise ValueError(f"step {number}: {_OTHER}")
        self._next += 1
        preempted = tuple(map(self._give_way, decision.preempted))
        admitted = tuple(map(self._admit_again, decision.admitted))
        if cache := self.kv_cache.prefix_cache:
            cache.num_queries += decision.queries
            cache.num_hits += decision.hits
        return Scheduled(decision.step, admitted, preempted)

    def _give_way(self, row: int) -> tuple[int, Request]:
        request = self.table.requests[row]
        assert request is not None
        self.finish(np.array([row], np.int32))
        self.waiting.prepend_request(request)
        self.num_preemptions += 1
        return row, request

    def _admit_again(self, admission: _Admission) -> Admitted:
        index, num_computed, chunk = admission
        if not self.waiting or self.waiting.peek_request().request_index != index:
            raise ValueError(f"request {index}: {_OTHER}")
        request = self.waiting.pop_request()
        row = self.table.take(request, num_computed)
        return Admitted(row, request, num_computed, chunk)

    def update(self, rows: Int32Array, num_tokens: Int32Array, decodes: BoolArray | None) -> None:
        """Take in what a step brought: of a replayed one what others than the scheduler read."""
        if not self._replays:
            super().update(rows, num_tokens, decodes)
            return
        num_output_tokens = self.table.num_output_tokens
        num_output_tokens[rows] = num_output_tokens.take(rows) + num_tokens

    def finish(self, rows: Int32Array) -> None:
        """Take back the rows of requests that have ended, and blocks where it gave any out."""
        if self._replays:
            self.table.give_up(rows)
        else:
            super().finish(rows)
