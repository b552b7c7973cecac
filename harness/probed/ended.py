"""Images that have ended: the most paused one by one, all others added up by kind."""

from heapq import heappushpop

from harness.probed.result import ProbedProcess
from harness.probed.series import kind_of

_MOST = 256
"""That are kept one by one, and kinds of others."""


class EndedImages:
    """As many as may come, in room for so many."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, int, ProbedProcess]] = []
        self._folded: dict[tuple[str, str], ProbedProcess] = {}

    def add(self, number: int, image: ProbedProcess) -> None:
        """The how manieth image of a watch has ended."""
        entry = (image.pause_seconds, number, image)
        if len(self._kept) < _MOST:
            self._kept.append(entry)
            if len(self._kept) == _MOST:
                self._kept.sort()  # is a heap
            return
        least = heappushpop(self._kept, entry)[2]
        key = (kind_of(least.name), least.role)
        if key not in self._folded and len(self._folded) >= _MOST:
            key = ("other", "other")
        known = self._folded.get(key)
        empty = ProbedProcess(0, *key, 0, [], least.python, least.generations, 1)
        self._folded[key] = known.plus(least) if known else empty

    def by_number(self) -> list[tuple[int, ProbedProcess]]:
        """Those that are kept one by one, and how manieth they were."""
        return [(number, image) for _, number, image in self._kept]

    def folded(self) -> list[ProbedProcess]:
        """The others by kind."""
        return list(self._folded.values())
