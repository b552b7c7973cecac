"""Which objects collections find young, by the line that made them and by type."""

import gc
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from gcbench.relative_file import relative_file
from harness.collector.allocation_trace import Frames, allocation_trace
from harness.collector.sites import AllocationSite, CollectionSites

_Key = tuple[type, str, int]
_OWN = (__file__, str(Path(__file__).with_name("allocation_trace.py")))
"""Where what this makes itself is made; so nothing here calls Python code of other modules."""
_PATHS_OF = 64
"""Of so many young objects the call path of one is kept."""


@dataclass(slots=True)
class _Tally:
    """Of one site, over the collections so far."""

    share: float = 0.0
    squares: float = 0.0
    pause: float = 0.0
    promoted: int = 0
    retained: int = 0


class SiteLog:
    """Looks at the young objects at the start of each collection between `start` and `stop`.

    `tracemalloc` must trace from before the objects are made. What this allocates meanwhile moves
    no counter: the collection that is about to begin sets them to zero. Of an object in a block
    that a list, tuple or the like from before the tracing left for it, the line is not known.
    """

    def __init__(self) -> None:
        self._tallies: dict[_Key, _Tally] = {}
        self._paths: dict[_Key, dict[Frames, int]] = {}
        self._collections = [0, 0, 0]
        self._young = 0
        self._seconds = 0.0
        self._now: dict[_Key, int] = {}
        self._began = 0

    def start(self) -> None:
        """Look from now on."""
        gc.callbacks.append(self._note)

    def stop(self) -> CollectionSites:
        """Look no more; walks once over all tracked objects."""
        gc.callbacks.remove(self._note)
        enabled = gc.isenabled()
        gc.disable()
        for key, count in self._count(gc.get_objects()).items():
            if key[1]:  # the rest was there before
                self._tally(key).retained += count
        if enabled:
            gc.enable()
        sites = [self._site(key, tally) for key, tally in self._tallies.items()]
        gen0, gen1, gen2 = self._collections
        return CollectionSites(
            collections=(gen0, gen1, gen2),
            young=self._young,
            sites=sorted(sites, key=lambda each: (-each.share, each.file, each.line, each.type)),
        )

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        generation: int = info["generation"]
        if phase == "start":
            self._now = self._count(gc.get_objects(generation=0), keeps_paths=True)
            self._young += sum(self._now.values())
            if generation == 1:
                for counts in (self._now, self._count(gc.get_objects(generation=1))):
                    for key, count in counts.items():
                        self._tally(key).promoted += count
            self._began = perf_counter_ns()
            return
        seconds = (perf_counter_ns() - self._began) / 1e9
        self._collections[generation] += 1
        self._seconds += seconds
        young = sum(self._now.values())
        for key, count in self._now.items():
            tally = self._tally(key)
            tally.share += count / young
            tally.squares += (count / young) ** 2
            tally.pause += seconds * count / young
        self._now = {}

    def _count(self, objects: Iterable[object], keeps_paths: bool = False) -> dict[_Key, int]:
        counts: dict[_Key, int] = {}
        for number, each in enumerate(objects):
            frames = allocation_trace(each)
            if frames is None:
                key = (type(each), "", 0)
            else:
                file, line = frames[0]
                if file in _OWN:
                    continue
                key = (type(each), file, line)
                if keeps_paths and number % _PATHS_OF == 0:
                    paths = self._paths.setdefault(key, {})
                    paths[frames] = paths.get(frames, 0) + 1
            counts[key] = counts.get(key, 0) + 1
        return counts

    def _tally(self, key: _Key) -> _Tally:
        return self._tallies.setdefault(key, _Tally())

    def _site(self, key: _Key, tally: _Tally) -> AllocationSite:
        kind, file, line = key
        times = sum(self._collections)
        share = tally.share / times if times else 0.0
        variance = max(0.0, tally.squares / times - share**2) if times else 0.0
        paths = self._paths.get(key)
        commonest: Frames = max(paths, key=paths.__getitem__) if paths else ()
        return AllocationSite(
            file=relative_file(file) if file else "",
            line=line,
            type=_type_name(kind),
            share=share,
            share_error=math.sqrt(variance / (times - 1)) if times > 1 else 0.0,
            pause_share=tally.pause / self._seconds if self._seconds else 0.0,
            promoted=tally.promoted,
            retained=tally.retained,
            path=[(relative_file(file), line) for file, line in reversed(commonest)],
        )


def _type_name(kind: type) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
