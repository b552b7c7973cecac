"""The running requests as columns: a row a request, so that a step touches arrays, not objects."""

from dataclasses import dataclass, field

import numpy as np

from engines.protocol import BoolArray, EngineConfig, Int32Array, SamplingParams

_NO_TOKENS = np.empty(0, np.int32)


@dataclass(slots=True, eq=False)
class Request:
    """A request as it waits for a row; ``arrival`` counts them as they come.

    After a preemption ``output_token_ids`` int32 are what it had sampled, to be computed again.
    ``slot``: where the output processor has it, from its first row to its end; -1 before.
    ``block_hashes``: of its full blocks, where prefixes are cached.
    """

    request_index: int
    prompt_token_ids: Int32Array
    params: SamplingParams
    priority: int = 0
    arrival: int = 0
    output_token_ids: Int32Array = field(default_factory=lambda: _NO_TOKENS)
    slot: int = -1
    block_hashes: tuple[bytes, ...] = ()

    @property
    def num_tokens(self) -> int:
        """Tokens to compute before it samples: the prompt, and its output so far."""
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    @property
    def token_ids(self) -> Int32Array:
        """These tokens, int32."""
        if not len(self.output_token_ids):
            return self.prompt_token_ids
        return np.concatenate([self.prompt_token_ids, self.output_token_ids])


class RequestTable:
    """State of every row. ``epoch`` grows when a row is given up: a step that is still under way
    for the row's last owner can be told from one for its next. ``num_prefill_tokens``: what is to
    be computed before a request samples, its output from before a preemption included.

    Rows are gathered with `take`: brackets around an array take four times as long.
    """

    def __init__(self, config: EngineConfig) -> None:
        rows = config.max_num_seqs
        self.request_index = np.full(rows, -1, np.int64)
        self.slot = np.full(rows, -1, np.int32)
        self.num_prefill_tokens = np.zeros(rows, np.int32)
        self.num_computed_tokens = np.zeros(rows, np.int32)
        self.num_prompt_tokens = np.zeros(rows, np.int32)
        self.num_output_tokens = np.zeros(rows, np.int32)
        self.max_tokens = np.zeros(rows, np.int32)
        self.num_under_way = np.zeros(rows, np.int32)
        self.priority = np.zeros(rows, np.int32)
        self.arrival = np.zeros(rows, np.int64)
        self.epoch = np.zeros(rows, np.int64)
        self.requests: list[Request | None] = [None] * rows
        self.free_rows = list(range(rows - 1, -1, -1))
        self.row_of: dict[int, int] = {}

    def take(self, request: Request, num_computed_tokens: int) -> int:
        """Give a waiting request a free row."""
        row = self.free_rows.pop()
        self.request_index[row] = request.request_index
        self.num_prefill_tokens[row] = request.num_tokens
        self.num_computed_tokens[row] = num_computed_tokens
        self.num_prompt_tokens[row] = len(request.prompt_token_ids)
        self.num_output_tokens[row] = len(request.output_token_ids)
        self.max_tokens[row] = request.params.max_tokens
        self.num_under_way[row] = 0
        self.priority[row] = request.priority
        self.arrival[row] = request.arrival
        self.requests[row] = request
        self.row_of[request.request_index] = row
        return row

    def awaits_its_last(self, rows: Int32Array) -> BoolArray:
        """bool ``[len(rows)]``: by length nothing is left to compute, the last token is under way.

        ``num_under_way`` are those that steps under way bring at least.
        """
        least = self.num_output_tokens.take(rows) + self.num_under_way.take(rows)
        awaits: BoolArray = least >= self.max_tokens.take(rows)
        return awaits

    def give_up(self, rows: Int32Array) -> None:
        """Free rows whose requests have ended or were preempted."""
        for index in self.request_index[rows].tolist():
            del self.row_of[index]
        self.request_index[rows] = -1
        self.epoch[rows] += 1
        for row in rows.tolist():
            self.requests[row] = None
            self.free_rows.append(row)


class Slots:
    """Small numbers for the requests that the output processor knows; a preemption keeps them."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._count = 0

    def take(self) -> int:
        """One that nobody has."""
        if self._free:
            return self._free.pop()
        self._count += 1
        return self._count - 1

    def give_back(self, slot: int) -> None:
        """Its request has ended."""
        self._free.append(slot)
