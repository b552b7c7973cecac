"""Who calls the collector by hand: where automatic collection is off, every collection is that."""

import gc
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import msgspec

from gcbench.relative_file import relative_file

_SETTERS = ("freeze", "unfreeze", "set_threshold", "disable", "enable")


class CollectorCall(msgspec.Struct, frozen=True, kw_only=True):
    """A line of code that has called the collector, so many times.

    ``name``: the function of `gc` that was called, "collect" for a ``generation``; -1 where it
    sets something. ``file`` is relative to the folder of the path from which it was imported.
    """

    generation: int
    name: str = "collect"
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
            _call(code, line, count, generation=generation)
            for (generation, code, line), count in self._calls.items()
        ]
        self._calls.clear()
        return sorted(calls, key=_order)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            frame = sys._getframe(1)
            key = (info["generation"], frame.f_code, frame.f_lineno)
            self._calls[key] = self._calls.get(key, 0) + 1


class SettingLog:
    """Notes who but the harness sets the collector by `gc`, between `start` and `stop`.

    Calls under a name that was imported from `gc` before are not seen.
    """

    def __init__(self) -> None:
        self._own: dict[str, Callable[..., Any]] = {}
        self._calls: dict[tuple[str, CodeType, int], int] = {}

    def start(self, *, are_carried_out: bool) -> None:
        """Note from now on; calls that are not carried out leave the collector as it is."""
        for name in _SETTERS:
            self._own[name] = getattr(gc, name)
            setattr(gc, name, self._noting(name, self._own[name], are_carried_out))

    def stop(self) -> list[CollectorCall]:
        """Note no more; the calls, the most frequent first."""
        for name, function in self._own.items():
            setattr(gc, name, function)
        self._own.clear()
        calls = [
            _call(code, line, count, generation=-1, name=name)
            for (name, code, line), count in self._calls.items()
        ]
        self._calls.clear()
        return sorted(calls, key=_order)

    def _noting(
        self, name: str, function: Callable[..., Any], is_carried_out: bool
    ) -> Callable[..., Any]:
        def noting(*arguments: Any) -> Any:
            frame = sys._getframe(1)
            is_ours = str(frame.f_globals.get("__name__")).startswith("harness.")
            if self._own and not is_ours:  # the name may be taken, and called when all is over
                key = (name, frame.f_code, frame.f_lineno)
                self._calls[key] = self._calls.get(key, 0) + 1
                if not is_carried_out:
                    return None
            return function(*arguments)

        return noting


def _call(code: CodeType, line: int, count: int, **of: Any) -> CollectorCall:
    file = relative_file(code.co_filename)
    return CollectorCall(file=file, line=line, function=code.co_qualname, count=count, **of)


def _order(call: CollectorCall) -> tuple[int, str, int, int, str]:
    return -call.count, call.file, call.line, call.generation, call.name
