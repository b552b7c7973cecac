"""Lengths as they were observed: one by one, or counted in bins; and reading either from a file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.files.regular_file import read_regular
from workloads.recipe.limits import MAX_TOKENS, check_range, check_shares

T = TypeVar("T")


class Empirical(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="empirical"
):
    """One of ``values`` tokens, each as likely: drawn with replacement."""

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("values must hold at least one length")
        for value in self.values:
            if not 1 <= value <= MAX_TOKENS:
                raise ValueError(
                    f"a length of {value:,} must be between 1 and {MAX_TOKENS:,} tokens"
                )

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``."""
        return np.array(self.values, np.int32)[rng.integers(len(self.values), size=n)]


class Bin(NamedTuple):
    """Lengths from ``low`` to ``high`` tokens, both included, and which share of all they are."""

    low: int
    high: int
    share: float


class LengthHistogram(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="histogram"
):
    """A bin by its share, then any length in it, all as likely.

    Bins ascend and do not overlap; there may be gaps between them. Shares sum to one.
    """

    bins: tuple[Bin, ...]

    def __post_init__(self) -> None:
        if not self.bins:
            raise ValueError("bins must hold at least one bin")
        for each in self.bins:
            check_range(each.low, each.high)
        for before, after in zip(self.bins, self.bins[1:], strict=False):
            if after.low <= before.high:
                raise ValueError(
                    f"bin {after.low:,} to {after.high:,} must begin above {before.high:,}, where "
                    "the bin before it ends"
                )
        check_shares(tuple(each.share for each in self.bins))

    def sample(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """Lengths in tokens, int32 ``[n]``."""
        low, high, share = (np.array(column) for column in zip(*self.bins, strict=True))
        edges = np.cumsum(share)
        drawn = np.searchsorted(edges / edges[-1], rng.random(n), side="right")
        return rng.integers(low[drawn], high[drawn], n, np.int32, endpoint=True)


def read_empirical(path: Path) -> Empirical:
    """One length a line. Raises ValueError with the line that is none."""
    return Empirical(tuple(_read_lines(path, _parse_length, "one length in tokens a line")))


def read_histogram(path: Path) -> LengthHistogram:
    """A bin a line, ``low,high,share``; these words may stand above. Raises ValueError."""
    return LengthHistogram(
        tuple(_read_lines(path, _parse_bin, "low,high,share a line", "low,high,share"))
    )


def _read_lines(path: Path, parse: Callable[[str], T], expected: str, header: str = "") -> list[T]:
    try:
        lines = read_regular(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text") from None
    values = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or (number == 1 and line.replace(" ", "").lower() == header):
            continue
        try:
            values.append(parse(line))
        except ValueError:
            raise ValueError(
                f"{path} line {number}: expected {expected}, found {line.strip()[:60]!r}"
            ) from None
    return values


def _parse_length(line: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,9}\s*", line):
        raise ValueError
    return int(line)


def _parse_bin(line: str) -> Bin:
    low, high, share = line.split(",")
    return Bin(_parse_length(low), _parse_length(high), float(share))
