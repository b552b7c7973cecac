"""Which functions run in a process while a trial serves its requests, whatever thread runs them."""

import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

from engines.protocol import EngineProcess
from gcbench.relative_file import relative_file
from harness.trial.output_hashes import RanFunction


class _Noted:
    codes: set[CodeType]
    is_blind: bool
    before: Any = None


_TOOL = "gcbench: functions that ran"


def note_functions(process: EngineProcess) -> None:
    """Begin. What stands on a stack by now runs: a process's loop is entered once."""
    noted = _Noted
    noted.codes = set()
    noted.is_blind = False
    for frame in sys._current_frames().values():
        _note_stack(frame)
    if sys.version_info >= (3, 12):
        _monitor()
    else:
        # Threads that run already cannot be looked into.
        noted.is_blind = threading.active_count() > 1
        noted.before = sys.getprofile()
        sys.setprofile(_on_call)


def noted_functions(process: EngineProcess) -> list[RanFunction] | None:
    """End; what has run, None where there are threads that could not be looked into."""
    noted = _Noted
    if sys.version_info >= (3, 12):
        _end_monitoring()
    else:
        sys.setprofile(noted.before)
    ran = {RanFunction(relative_file(code.co_filename), code.co_qualname) for code in noted.codes}
    noted.codes = set()
    return None if noted.is_blind else sorted(ran)


def functions_that_ran(rpc: Callable[..., list[Any]]) -> list[RanFunction]:
    """Of all processes of an engine; none where one of them cannot tell."""
    each: list[list[RanFunction] | None] = rpc(noted_functions)
    found = [ran for ran in each if ran is not None]
    return sorted({one for ran in found for one in ran}) if len(found) == len(each) else []


def _note_stack(frame: FrameType | None) -> None:
    while frame is not None:
        _Noted.codes.add(frame.f_code)
        frame = frame.f_back


def _on_call(frame: FrameType, event: str, arg: object) -> None:
    if event == "call":
        _Noted.codes.add(frame.f_code)


def _free_tools() -> Iterable[int]:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    return (tool for tool in (4, 3, 5) if monitoring.get_tool(tool) is None)


def _monitor() -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]

    def started(code: CodeType, offset: int) -> object:
        _Noted.codes.add(code)
        return monitoring.DISABLE

    _Noted.before = tool = next(iter(_free_tools()))
    monitoring.use_tool_id(tool, _TOOL)
    events = monitoring.events.PY_START | monitoring.events.PY_RESUME
    for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
        monitoring.register_callback(tool, event, started)
    monitoring.set_events(tool, events)
    monitoring.restart_events()


def _end_monitoring() -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool, _Noted.before = _Noted.before, None
    if tool is not None:  # it may have ended before
        monitoring.set_events(tool, 0)
        for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
