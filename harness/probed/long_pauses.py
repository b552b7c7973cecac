"""Pauses over a limit, of which the probe tells the line that ran and the young objects."""

from ast import literal_eval
from heapq import nlargest
from pathlib import Path

import msgspec

from harness.probed.result import ExplainedPause
from harness.probed.watched import Watched
from workloads.files.regular_file import open_regular

_MOST = 50
_MOST_BYTES = 1 << 16
_Told = tuple[int, int, int, str, int, str, list[tuple[str, int]]]


class LongPauses:
    """The longest of as many as may come."""

    def __init__(self) -> None:
        self.longest_first: list[ExplainedPause] = []

    def take(self, path: Path, whose: Watched) -> None:
        """What a process has left in a file, if it is there. Raises ValueError, OSError."""
        try:
            with open_regular(path, _MOST_BYTES) as file:
                content = file.read()
            path.unlink()
            told = msgspec.convert(literal_eval(content.decode()), _Told)
        except FileNotFoundError:
            return
        except (SyntaxError, MemoryError, RecursionError, msgspec.MsgspecError) as error:
            raise ValueError(f"{path} is not as the probe writes it") from error
        start_ns, duration_ns, generation, file_name, line, function, objects = told
        pause = ExplainedPause(
            process=whose.name,
            pid=whose.pid,
            start_ns=start_ns,
            seconds=duration_ns / 1e9,
            generation=generation,
            file=file_name,
            line=line,
            function=function,
            objects=objects,
            python=whose.ring.python,
        )
        all_ = [*self.longest_first, pause]
        self.longest_first = nlargest(_MOST, all_, key=lambda each: each.seconds)
