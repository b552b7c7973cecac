"""The interpreter that runs: its build, its collector, and what is known to differ by version."""

import gc
import platform
import sys
import sysconfig
from typing import NamedTuple

import msgspec


class KnownCollector(NamedTuple):
    """What is known of a version's collector.

    ``young_threshold``: tracked objects, allocated less freed, that make a fresh interpreter
    collect the young ones. ``differs``: what it does otherwise than others, in words.
    """

    young_threshold: int
    differs: str


VERSIONS = {
    (3, 11): KnownCollector(
        700, "a collection may start within any allocation, so one call into C can make many"
    ),
    (3, 12): KnownCollector(
        700,
        "a collection waits for the next check of the interpreter, so one call into C makes one "
        "at most; comprehensions have no frame of their own",
    ),
    (3, 13): KnownCollector(
        2000,
        "the young threshold is 2,000 objects instead of 700; a collection waits for the next "
        "check of the interpreter, so one call into C makes one at most",
    ),
    (3, 14): KnownCollector(
        2000,
        "generational: the young threshold is 2,000 objects instead of 700; each dictionary is "
        "tracked, and iterators and methods come from free lists, which move no counter",
    ),
}
"""The versions that CI runs; `requires-python`, classifiers and documentation name the same."""


_INCREMENTAL = KnownCollector(
    2000,
    "incremental: each collection is of the young objects and an increment of the old ones, which "
    "counts as generation 1, and only a call by hand is a full one; gc.get_stats leaves out those "
    "that find nothing due; 3.14.5 has generations again",
)


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """What a figure was measured with. Collector counts of two of these never compare."""

    version: str
    implementation: str
    build: str
    collector: str

    def __str__(self) -> str:
        return f"{self.implementation} {self.version} ({self.build}), collector {self.collector}"


def this_interpreter() -> Interpreter:
    """The one that runs this."""
    return Interpreter(
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        build=" ".join((*platform.python_build(), platform.python_compiler())),
        collector=_collector(),
    )


def collector_differences(version: tuple[int, ...]) -> str:
    """What the collector of this version does otherwise than others, in words; "" if unknown."""
    known = _INCREMENTAL if is_incremental(version) else VERSIONS.get((version[0], version[1]))
    return known.differs if known else ""


def is_incremental(version: tuple[int, ...]) -> bool:
    """Whether CPython of this version collects the old objects a part at a time."""
    return (3, 14) <= version < (3, 14, 5)


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it: "3.12"."""
    return ".".join(map(str, version))


def is_free_threaded() -> bool:
    """Whether this build has no global interpreter lock, and so another collector."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _collector() -> str:
    kind = "generational"
    if is_free_threaded():
        kind = "free-threaded"
    elif is_incremental(tuple(sys.version_info[:3])):
        kind = "incremental"
    return f"{kind}, thresholds {'/'.join(map(str, gc.get_threshold()))}"
