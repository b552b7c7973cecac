"""Who calls the collector by hand: where automatic collection is off, every collection is that."""

import gc
import sys
from types import CodeType
from typing import Any

import msgspec

from gcbench.relative_file import relative_file


class CollectorCall(msgspec.Struct, frozen=True, kw_only=True):
    """A line of code that has called the collector, so many times for a generation.

    ``file`` is relative to the folder of the path from which it was imported.
    """

    generation: int
    file: str
    line: int
    function: str
    count: int


class CallerLog:
    """Notes the Python frame that each collection was called from, between `start` and `stop`."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, CodeType, int], int] = {}

    def start(self) -> None:
        """Note from now on."""
        gc.callbacks.append(self._note)

    def stop(self) -> list[CollectorCall]:
        """Note no more; the calls, the most frequent first."""
        gc.callbacks.remove(self._note)
        calls = [
            CollectorCall(
                generation=generation,
                file=relative_file(code.co_filename),
                line=line,
                function=code.co_qualname,
                count=count,
            )
            for (generation, code, line), count in self._calls.items()
        ]
        self._calls.clear()
        return sorted(calls, key=lambda call: (-call.count, call.file, call.line, call.generation))

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            frame = sys._getframe(1)
            key = (info["generation"], frame.f_code, frame.f_lineno)
            self._calls[key] = self._calls.get(key, 0) + 1
