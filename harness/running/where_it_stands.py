"""In which functions the processes of a trial are that gives no answer."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

from harness.running.stack_dump import SIGNAL

_WAIT_SECONDS = 2.0
_LOOK_SECONDS = 0.05
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_STANDARD_LIBRARY = re.compile(r"/lib/python3\.\d+/(?!site-packages/)|^<")
"""Where a wait ends in each program: what waits says more."""


def where_it_stands(group: int, folder: Path, pid: int = 0) -> str:
    """The functions that the main threads are in, as "f (file:line) and g (file:line)", or "".

    Asks all of a process group that `harness.running.stack_dump` has readied, or only ``pid``; the
    signal ends those that are not yet.
    """
    files = sorted(folder.glob(f"stacks-{pid or '*'}"))
    if not files:
        return ""
    with suppress(ProcessLookupError):
        os.kill(pid or -group, SIGNAL)
    _wait_for(files)
    found = [_innermost(file.read_text(errors="replace")) for file in files]
    return " and ".join(dict.fromkeys(filter(None, found)))


def _wait_for(files: list[Path]) -> None:
    """Until each has been written and grows no more; one that is stopped writes nothing."""
    deadline = time.monotonic() + _WAIT_SECONDS
    before: list[int] = []
    while time.monotonic() < deadline:
        now = [file.stat().st_size for file in files]
        if all(now) and now == before:
            return
        before = now
        time.sleep(_LOOK_SECONDS)


def _innermost(dump: str) -> str:
    main_thread = dump.rpartition("(most recent call first):\n")[2]
    frames: list[tuple[str, str, str]] = _FRAME.findall(main_thread)
    ours = [frame for frame in frames if not _STANDARD_LIBRARY.search(frame[0])]
    if not (chosen := (ours or frames)[:1]):
        return ""
    file, line, function = chosen[0]
    return f"{function} ({'/'.join(Path(file).parts[-2:])}:{line})"
