"""Which requests go first where the engine heeds it."""

import re

import msgspec
import numpy as np

from workloads.requests import Int32Array


class Priorities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From ``low`` to ``high``, both included, all as likely; smaller goes first, as in vLLM."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not -(2**31) <= self.low <= self.high < 2**31:
            raise ValueError(
                f"priorities {self.low:,} and {self.high:,} must be in order and fit 32 bits"
            )

    def sample(self, rng: np.random.Generator, n: int) -> Int32Array:
        """A priority for each request, int32 ``[n]``."""
        return rng.integers(self.low, self.high, n, np.int32, endpoint=True)


def parse_priorities(text: str) -> Priorities:
    """Read priorities as a flag gives them, ``LOW:HIGH``. Raises ValueError."""
    found = re.fullmatch(r"(-?[0-9]{1,10}):(-?[0-9]{1,10})", text.strip())
    if found is None:
        raise ValueError(f"priorities {text!r} cannot be read; give LOW:HIGH, such as 0:3")
    return Priorities(int(found[1]), int(found[2]))
