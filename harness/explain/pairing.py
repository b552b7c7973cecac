"""Which function of one version is which of another: by name, then by what their code does."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from gcbench.function_costs import FunctionCost

PairKind = Literal["paired", "moved", "renamed", "split", "joined", "new", "gone"]
"""``paired``: of one name in one file. ``split``: one has become several, which do what it did;
``joined``: the other way round."""

_LENGTH = 3
"""Instructions in a row that are compared."""
_ALIKE = 0.6
"""Share of two functions' instruction sequences that both have, from which on they are one."""
_PART = 0.6
"""Share of a new function's sequences that an old one had, from which on it is a part of it."""
_FEWEST = 8
"""Instructions of a function, from which on its code tells it from others."""


class Paired(NamedTuple):
    """Places in the two lists of functions; one side is empty where nothing is like the other."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    kind: PairKind


def pair_functions(before: Sequence[FunctionCost], after: Sequence[FunctionCost]) -> list[Paired]:
    """Each function of either side in exactly one place.

    The same name and file, of a function made from a string with whatever arguments; then one that
    moved to another file or class; then one that does alike, whatever its name. What is left of the
    larger functions is looked for in those that have changed: a part that was taken out of one, or
    put into one.
    """
    pairing = _Pairing(before, after)
    pairing.by(lambda each: (each.file, each.name), "paired")
    pairing.by(lambda each: (each.file, each.name.partition("(")[0]), "paired", _ALIKE)
    pairing.by(lambda each: each.name, "moved", _ALIKE / 2)
    pairing.by(lambda each: _last(each.name), "moved", _ALIKE)
    pairing.by_code()
    pairing.parts("split", pairing.left_after, pairing.codes_after, pairing.codes_before)
    pairing.parts("joined", pairing.left_before, pairing.codes_before, pairing.codes_after)
    return pairing.result()


@dataclass(slots=True)
class _Pair:
    sides: tuple[list[int], list[int]]
    kind: PairKind


class _Pairing:
    def __init__(self, before: Sequence[FunctionCost], after: Sequence[FunctionCost]) -> None:
        self._before, self._after = before, after
        self.left_before = dict.fromkeys(range(len(before)))
        self.left_after = dict.fromkeys(range(len(after)))
        self.codes_before = [_sequences(each.code) for each in before]
        self.codes_after = [_sequences(each.code) for each in after]
        self._pairs: list[_Pair] = []

    def by(
        self, key: Callable[[FunctionCost], Hashable], kind: PairKind, alike: float = 0.0
    ) -> None:
        """Pair those of one key, in the order of their lines, that are alike enough."""
        there: dict[Hashable, list[int]] = {}
        for place in sorted(self.left_after, key=lambda place: self._after[place].line):
            there.setdefault(key(self._after[place]), []).append(place)
        for mine in sorted(self.left_before, key=lambda place: self._before[place].line):
            found = there.get(key(self._before[mine]), [])
            likeness = [self._likeness(mine, theirs) for theirs in found]
            if not likeness or max(likeness) < alike:
                continue
            # The best of equal names; of the equally good ones the first.
            self._pair(mine, found.pop(likeness.index(max(likeness))), kind)

    def by_code(self) -> None:
        """Pair what is most alike first."""
        likeness = sorted(
            (-like, mine, theirs)
            for mine in self._telling(self.left_before, self._before)
            for theirs in self._telling(self.left_after, self._after)
            if (like := self._likeness(mine, theirs)) >= _ALIKE
        )
        for _, mine, theirs in likeness:
            if mine in self.left_before and theirs in self.left_after:
                self._pair(mine, theirs, "renamed")

    def parts(
        self,
        kind: Literal["split", "joined"],
        left: dict[int, None],
        codes: Sequence[Counter[str]],
        wholes: Sequence[Counter[str]],
    ) -> None:
        """Add what is left, and was a part of another on the other side, to that one's pair."""
        mine, theirs = (1, 0) if kind == "split" else (0, 1)
        functions = self._after if kind == "split" else self._before
        for place in list(self._telling(left, functions)):
            code = codes[place]
            shares = [
                (_common(code, wholes[whole]) / code.total(), number)
                for number, each in enumerate(self._pairs)
                for whole in each.sides[theirs]
            ]
            share, number = max(shares, key=lambda each: (each[0], -each[1]), default=(0.0, 0))
            if share >= _PART and self._has_lost(number, mine, theirs):
                self._pairs[number].sides[mine].append(place)
                self._pairs[number].kind = kind
                del left[place]

    def _has_lost(self, number: int, mine: int, theirs: int) -> bool:
        """Whether the whole is shorter where the part is a function of its own."""
        sizes = [
            max(codes[place].total() for place in side)
            for codes, side in zip(
                (self.codes_before, self.codes_after), self._pairs[number].sides, strict=True
            )
        ]
        return sizes[mine] < sizes[theirs]

    def _likeness(self, mine: int, theirs: int) -> float:
        one, other = self.codes_before[mine], self.codes_after[theirs]
        both = one.total() + other.total()
        return 2 * _common(one, other) / both if both else 1.0

    def _telling(self, left: Iterable[int], functions: Sequence[FunctionCost]) -> list[int]:
        return [place for place in left if len(functions[place].code) >= 2 * _FEWEST]

    def _pair(self, mine: int, theirs: int, kind: PairKind) -> None:
        del self.left_before[mine], self.left_after[theirs]
        self._pairs.append(_Pair(([mine], [theirs]), kind))

    def result(self) -> list[Paired]:
        """All pairs, then what has none."""
        return [
            *(
                Paired(tuple(each.sides[0]), tuple(each.sides[1]), each.kind)
                for each in self._pairs
            ),
            *(Paired((place,), (), "gone") for place in self.left_before),
            *(Paired((), (place,), "new") for place in self.left_after),
        ]


def _sequences(code: str) -> Counter[str]:
    """How often each run of instructions occurs; of short code, all of it together."""
    width = 2 * _LENGTH
    count = max(1, len(code) // 2 - _LENGTH + 1)
    return Counter(code[2 * start : 2 * start + width] for start in range(count))


def _common(one: Counter[str], other: Counter[str]) -> int:
    return (one & other).total()


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]
