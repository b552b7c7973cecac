"""Mutants of decision rules, and thresholds with what a moved one would be: both lists as data."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old``, which stands once in ``file``, becomes ``new``; ``tests`` are to notice.

    ``wrong``: what the program would then get wrong.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    wrong: str

    def applied(self, source: str) -> str:
        """The mutant's source. Raises ValueError where ``old`` does not stand exactly once."""
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands {count} times in {self.file}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Threshold:
    """``constant`` of a module, its source ``value``, and the test that knows where it lies.

    One entry of a table is ``TABLE.key``.
    ``moved``: other values, the nearest that mean anything below and above.
    """

    file: str
    constant: str
    value: str
    moved: tuple[str, ...]
    test: str

    @property
    def mutants(self) -> list[Mutant]:
        """The constant moved."""
        place = f"{self.file.removesuffix('.py').replace('/', '.')}.{self.constant}"
        return [
            Mutant(
                name=f"{place}={value}",
                file=self.file,
                old=self._line(self.value),
                new=self._line(value),
                tests=(self.test,),
                wrong=f"it is {self.value}",
            )
            for value in self.moved
        ]

    def _line(self, value: str) -> str:
        name, _, key = self.constant.partition(".")
        return f'\n    "{key}": {value},\n' if key else f"\n{name} = {value}\n"


@dataclass(frozen=True, slots=True)
class ThresholdTable:
    """``files`` decide something. Of their numbers ``rows`` do, and ``others`` do not: why."""

    files: tuple[str, ...]
    rows: tuple[Threshold, ...]
    others: dict[str, dict[str, str]]


def read_mutants() -> list[Mutant]:
    """Those of ``mutants.toml``."""
    return [
        Mutant(**(each | {"tests": tuple(each["tests"])})) for each in _read("mutants")["mutants"]
    ]


def read_thresholds() -> ThresholdTable:
    """That of ``thresholds.toml``."""
    table = _read("thresholds")
    rows = [
        Threshold(file, constant, row["value"], tuple(row["moved"]), row["test"])
        for file, constants in table["thresholds"].items()
        for constant, row in constants.items()
    ]
    return ThresholdTable(tuple(table["files"]), tuple(rows), table["others"])


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text())
