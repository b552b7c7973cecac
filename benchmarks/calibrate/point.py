"""A kind of step, what it has to do, and how long it took."""

from statistics import median
from typing import NamedTuple


class Load(NamedTuple):
    """What a step's length depends on, summed over its requests: tokens scheduled, context (the
    step's own tokens included), and the product of the two.
    """

    num_tokens: int
    context_tokens: int
    token_pairs: int


class Point(NamedTuple):
    """A kind of step: ``batch_size`` rows of ``context`` tokens that decode, and beside them one
    that computes the first ``prefill`` tokens of its prompt. No rows or no prompt: 0.
    """

    batch_size: int
    context: int
    prefill: int

    @property
    def load(self) -> Load:
        """What such a step has to do."""
        decoding = self.batch_size * self.context
        return Load(
            self.batch_size + self.prefill,
            decoding + self.prefill,
            decoding + self.prefill * self.prefill,
        )

    def __str__(self) -> str:
        rows = f"{self.batch_size:,} × {self.context:,}"
        if not self.prefill:
            return f"decode {rows}"
        return f"prefill {self.prefill:,} {f'beside {rows}' if self.batch_size else 'alone'}"


class LaunchTimes(NamedTuple):
    """Of a step on an idle device, in seconds: of its launch; from the launch's beginning until
    its tokens were there; and of these what the device says the step took.
    """

    launch_seconds: float
    latency_seconds: float
    step_seconds: float

    @property
    def before_seconds(self) -> float:
        """What the step took beside the device's time."""
        return self.latency_seconds - self.step_seconds

    @property
    def tail_seconds(self) -> float:
        """What of the launch lies behind the device's start."""
        return self.launch_seconds - self.before_seconds


class Sample(NamedTuple):
    """A point as measured: how long each of its steps took."""

    point: Point
    steps: list[LaunchTimes]

    @property
    def step_seconds(self) -> list[float]:
        """Of each step, by the device's clock."""
        return [step.step_seconds for step in self.steps]

    @property
    def seconds(self) -> float:
        """The median."""
        return median(self.step_seconds)
