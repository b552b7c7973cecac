"""How often the collector passes over the whole heap, over many steps."""

import math

import msgspec


class LongRun(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule served again and again, ``steps_each`` steps each time, ``steps`` in all.

    ``full_passes``: the steps, from 0, in which the engine's collector passed over the whole heap.
    ``due``: how many its other collections, counted by the thresholds, could have led to.
    """

    steps_each: int
    steps: int
    full_passes: list[int]
    due: float = 1.0

    @property
    def passes_per_serving(self) -> float:
        """From the first pass to the last, or over all steps where there were not two."""
        if len(self.full_passes) > 1:
            between = self.full_passes[-1] - self.full_passes[0]
            return (len(self.full_passes) - 1) * self.steps_each / between
        return len(self.full_passes) * self.steps_each / self.steps

    @property
    def error(self) -> float:
        """Standard error of `passes_per_serving`: where the first and the last pass fell in time.

        Each is late by up to the way to the next young collection. Without two passes: as if one
        more or less might have been seen; without any, as many as were due.
        """
        if len(self.full_passes) > 2:
            gaps = [b - a for a, b in zip(self.full_passes, self.full_passes[1:], strict=False)]
            mean = sum(gaps) / len(gaps)
            spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
            return self.passes_per_serving * spread / mean / len(gaps)
        missed = 1.0 if self.full_passes else min(1.0, self.due)
        return missed * self.steps_each / self.steps / 2
