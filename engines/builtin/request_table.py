"""The running requests as columns: a row a request, so that a step touches arrays, not objects."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engines.protocol import EngineConfig, Int32Array


class NewRequest(NamedTuple):
    """A request as it waits for a row."""

    request_index: int
    prompt_token_ids: Int32Array
    max_tokens: int
    stop_token_ids: Sequence[int]


class RequestTable:
    """State of every row. ``epoch`` grows when a row is given up: a step that is still under way
    for the row's last owner can be told from one for its next.
    """

    def __init__(self, config: EngineConfig) -> None:
        rows = config.max_num_seqs
        self.request_index = np.full(rows, -1, np.int64)
        self.num_prompt_tokens = np.zeros(rows, np.int32)
        self.num_computed_tokens = np.zeros(rows, np.int32)
        self.num_output_tokens = np.zeros(rows, np.int32)
        self.max_tokens = np.zeros(rows, np.int32)
        self.num_under_way = np.zeros(rows, np.int32)
        self.epoch = np.zeros(rows, np.int64)
        self.free_rows = list(range(rows - 1, -1, -1))
        self.row_of: dict[int, int] = {}

    def take(self, request: NewRequest) -> int:
        """Give a waiting request a free row."""
        row = self.free_rows.pop()
        self.request_index[row] = request.request_index
        self.num_prompt_tokens[row] = len(request.prompt_token_ids)
        self.num_computed_tokens[row] = 0
        self.num_output_tokens[row] = 0
        self.max_tokens[row] = request.max_tokens
        self.num_under_way[row] = 0
        self.row_of[request.request_index] = row
        return row

    def give_up(self, rows: Int32Array) -> None:
        """Free rows whose requests have ended."""
        for index in self.request_index[rows].tolist():
            del self.row_of[index]
        self.request_index[rows] = -1
        self.epoch[rows] += 1
        self.free_rows += rows.tolist()
