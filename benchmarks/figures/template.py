"""A sentence or a row of a table whose figures stand in braces, as in Python's format strings."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from string import Formatter

from benchmarks.figures.formats import FORMATS, in_its_unit
from benchmarks.figures.value import VALUE


class Template:
    """``{freeze.change.ratio:change}`` is the attribute of what is called ``freeze``, written by
    one of `FORMATS`; without a format, in its own unit. Raises ValueError for an unknown format,
    or for two figures with nothing between them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = list(Formatter().parse(text))
        self._literals = [literal for literal, *_ in parts]
        self._figures = [(name, spec or "") for _, name, spec, _ in parts if name is not None]
        if parts and parts[-1][1] is not None:
            self._literals.append("")
        if not self._figures:
            raise ValueError(f"{text!r} has no figure: write {{name:format}} in its place")
        if any(not after for _, after in pairwise(self._literals[:-1])):
            raise ValueError(f"{text!r}: two figures touch, so that nobody could tell them apart")
        for _, spec in self._figures:
            if spec and spec not in FORMATS:
                raise ValueError(f"{text!r}: no format {spec!r}: {', '.join(FORMATS)}")
        self._pattern = re.compile(f"({VALUE})".join(map(re.escape, self._literals)))

    def find(self, page: str) -> re.Match[str]:
        """Its place in a page, a group for each figure. Raises ValueError unless there is one."""
        found = list(self._pattern.finditer(page))
        if len(found) != 1:
            raise ValueError(f"{len(found)} places read {self.text!r}; exactly one has to")
        return found[0]

    def values(self, names: Mapping[str, object]) -> list[str]:
        """Its figures as they are to be written. Raises ValueError where one is not there."""
        values = []
        for name, spec in self._figures:
            value = look_up(name, names)
            try:
                shown = FORMATS[spec](value) if spec else in_its_unit(value)
            except (TypeError, ValueError):
                raise ValueError(f"{name} is {value!r}, which cannot be written so") from None
            if not re.fullmatch(VALUE, shown):
                raise ValueError(f"{name} is {value!r}, of which there is no figure")
            values.append(shown)
        return values

    def filled(self, values: Sequence[str]) -> str:
        """The text with ``values`` in the places of its figures."""
        ends = [*values, ""]
        return "".join(literal + end for literal, end in zip(self._literals, ends, strict=True))


def look_up(name: str, names: Mapping[str, object]) -> object:
    """What ``name``, such as ``freeze.change.ratio``, stands for. Raises ValueError."""
    try:
        found, _ = Formatter().get_field(name, (), names)
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"there is no {name}: {error}") from None
    return found
