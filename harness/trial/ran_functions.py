"""What runs in a process while a trial serves its requests, whatever thread runs it: which
functions, and of those that are asked about which lines.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Set
from types import CodeType, FrameType
from typing import Any

from engines.protocol import EngineProcess
from gcbench.relative_file import relative_file
from harness.trial.output_hashes import QualifiedName, RanFunction, of_function

_Tracer = Callable[[FrameType, str, Any], Any]


class _Code:
    """A function's code, the lines of it that are asked about, and those that have not run yet."""

    __slots__ = ("file", "left", "lines", "name", "on_line")

    def __init__(self, code: CodeType) -> None:
        self.file, self.name = relative_file(code.co_filename), code.co_qualname
        is_asked = of_function(self.file, self.name) in _Noted.asked
        self.lines = _lines(code) if is_asked else set()
        self.left = left = set(self.lines)

        def on_line(frame: FrameType, event: str, arg: object) -> _Tracer:
            if event == "line":
                left.discard(frame.f_lineno)
                if not left:
                    frame.f_trace_lines = False
            return on_line

        self.on_line: _Tracer = on_line


class _Noted:
    # By `id`: a code object is hashed anew each time.
    codes: dict[int, _Code]
    asked: Set[QualifiedName]
    stack: list[tuple[FrameType, Any]]
    is_blind: bool
    before: Any = None


_TOOL = "gcbench: lines that ran"


def note_functions(process: EngineProcess, lines_of: Set[QualifiedName]) -> None:
    """Begin. What stands on a stack by now runs: a process's loop is entered once.

    ``lines_of``: functions of which lines are noted, which takes several times as long as to run.
    """
    noted = _Noted
    noted.codes, noted.stack, noted.asked = {}, [], lines_of
    noted.is_blind = False
    frames = sys._current_frames()
    mine = frames.pop(threading.get_ident())
    if sys.version_info >= (3, 12):
        _note_stack(mine)
        _monitor()
    else:
        # Threads that run already cannot be looked into.
        noted.is_blind = threading.active_count() > 1
        noted.before = sys.gettrace()
        for frame in _note_stack(mine.f_back):
            noted.stack.append((frame, frame.f_trace))
            frame.f_trace = _code(frame.f_code).on_line
        sys.settrace(_on_call)
    for frame in frames.values():
        _note_stack(frame)


def noted_functions(process: EngineProcess) -> list[RanFunction] | None:
    """End; what has run, None where there are threads that could not be looked into."""
    noted = _Noted
    if sys.version_info >= (3, 12):
        _end_monitoring()
    else:
        sys.settrace(noted.before)
        for frame, before in noted.stack:
            frame.f_trace = before
    ran = sorted(map(_ran, noted.codes.values()))
    noted.codes, noted.stack = {}, []
    return None if noted.is_blind else ran


def functions_that_ran(rpc: Callable[..., list[Any]]) -> list[RanFunction]:
    """Of all processes of an engine; none where one of them cannot tell."""
    each: list[list[RanFunction] | None] = rpc(noted_functions)
    found = [ran for ran in each if ran is not None]
    return sorted({one for ran in found for one in ran}) if len(found) == len(each) else []


def _ran(noted: _Code) -> RanFunction:
    return RanFunction(noted.file, noted.name, tuple(sorted(noted.lines - noted.left)))


def _lines(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line}


def _code(code: CodeType) -> _Code:
    found = _Noted.codes.get(id(code))
    if found is None:
        found = _Noted.codes[id(code)] = _Code(code)
        found.left.discard(code.co_firstlineno)
    return found


def _note_stack(frame: FrameType | None) -> list[FrameType]:
    """Each stands on its line."""
    found = []
    while frame is not None:
        _code(frame.f_code).left.discard(frame.f_lineno)
        found.append(frame)
        frame = frame.f_back
    return found


def _on_call(frame: FrameType, event: str, arg: object) -> _Tracer | None:
    noted = _code(frame.f_code)
    return noted.on_line if noted.left else None


def _free_tools() -> Iterable[int]:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    return (tool for tool in (4, 3, 5) if monitoring.get_tool(tool) is None)


def _monitor() -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]

    def started(code: CodeType, offset: int) -> object:
        _code(code)
        return monitoring.DISABLE

    def line_began(code: CodeType, line: int) -> object:
        _code(code).left.discard(line)
        return monitoring.DISABLE

    _Noted.before = tool = next(iter(_free_tools()))
    monitoring.use_tool_id(tool, _TOOL)
    events = monitoring.events
    for event in (events.PY_START, events.PY_RESUME):
        monitoring.register_callback(tool, event, started)
    monitoring.register_callback(tool, events.LINE, line_began)
    monitoring.set_events(tool, events.PY_START | events.PY_RESUME | events.LINE)
    monitoring.restart_events()


def _end_monitoring() -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool, _Noted.before = _Noted.before, None
    if tool is not None:  # it may have ended before
        events = monitoring.events
        monitoring.set_events(tool, 0)
        for event in (events.PY_START, events.PY_RESUME, events.LINE):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
