"""Admits requests in the order in which they came and gives each a token per step."""

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class Sequence:
    name: int
    last_token: int
    remaining: int


class Scheduler:
    def __init__(self, max_num_seqs: int) -> None:
        self.max_num_seqs = max_num_seqs
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def step(self) -> tuple[list[Sequence], list[Sequence]]:
        """The sequences that have a new ``last_token``, and those of them that have ended."""
        while self.waiting and len(self.running) < self.max_num_seqs:
            self.running.append(self.waiting.popleft())
        batch = self.running
        for sequence in batch:
            sequence.last_token = (sequence.last_token * 31 + 7) % 32_000
            sequence.remaining -= 1
        self.running = [each for each in batch if each.remaining]
        return batch, [each for each in batch if not each.remaining]
