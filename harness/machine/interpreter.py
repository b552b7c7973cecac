"""The interpreter that runs: its build, its collector, and what is known to differ by version."""

import gc
import platform
import sysconfig

import msgspec

SUPPORTED = ((3, 11), (3, 12), (3, 13))
"""The versions that CI runs; `requires-python`, classifiers and documentation name the same."""

YOUNG_THRESHOLDS = {(3, 11): 700, (3, 12): 700, (3, 13): 2000}
"""Tracked objects, allocated less freed, that make a fresh interpreter collect the young ones."""

_DIFFERENCES = {
    (3, 11): "a collection may start within any allocation, so one call into C can make many",
    (3, 12): "a collection waits for the next check of the interpreter, so one call into C makes "
             "one at most; comprehensions have no frame of their own",
    (3, 13): "the young threshold is 2,000 objects instead of 700; a collection waits for the "
             "next check of the interpreter, so one call into C makes one at most",
}  # fmt: skip


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


def differences(version: tuple[int, ...]) -> str:
    """What the collector of this version does otherwise than others, in words; "" if unknown."""
    return _DIFFERENCES.get((version[0], version[1]), "")


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it: "3.12"."""
    return ".".join(map(str, version))


def is_free_threaded() -> bool:
    """Whether this build has no global interpreter lock, and so another collector."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _collector() -> str:
    kind = "free-threaded" if is_free_threaded() else "generational"
    return f"{kind}, thresholds {'/'.join(map(str, gc.get_threshold()))}"
