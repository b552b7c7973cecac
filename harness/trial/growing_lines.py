"""Lines whose bytes grow as long as an engine serves, as a trial answers them."""

from collections.abc import Iterable

import msgspec

from harness import format as fmt

GROWS_WITH = ("step", "request", "block")
"""Steps, finished requests and blocks of the KV cache that they took."""


class GrowingLine(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that a line leaves for good, by which of `GROWS_WITH` they come with.

    ``what``: the container that grows, such as "list"; "" for new objects. ``file`` is relative to
    the folder of the path from which it was imported; "" and line 0 is what nobody can place.
    """

    file: str
    line: int
    what: str
    rates: dict[str, float]


def leak_metrics(lines: Iterable[GrowingLine] | None) -> dict[str, float | None]:
    """Of all lines together; nothing where it was not measured."""
    if lines is None:
        return {}
    rates = [line.rates for line in lines]
    return {f"leaked_bytes_per_{of}": sum(each.get(of, 0) for each in rates) for of in GROWS_WITH}


def growing_words(line: GrowingLine) -> str:
    """How much, of what, where: "8 B per request, list at engines/engine.py:12"."""
    rates = " and ".join(f"{fmt.bytes_(rate)} per {of}" for of, rate in line.rates.items())
    where = f"{line.file}:{line.line}" if line.file else "a line that ran before"
    return f"{rates}, {line.what or 'new objects'} at {where}"
