"""One process image that is watched: its ring and all that was in it."""

from contextlib import suppress

import numpy as np
import psutil

from engines.protocol import Int64Array
from harness.probed.identity import name_of
from harness.probed.result import GenerationTotals, ProbedProcess
from harness.probed.ring import COLLECTED, CPU_NS, DURATION_NS, GENERATION, GENERATIONS, Ring
from harness.probed.series import BOUNDS_SECONDS, SUMS, CounterSeries

_BOUNDS_NS = np.array(BOUNDS_SECONDS) * 1e9


class Watched:
    """An image's ring. ``number``: the how manieth of a watch it is, from 1 on."""

    def __init__(self, ring: Ring, number: int, root_pid: int, series: CounterSeries) -> None:
        self.ring, self.number = ring, number
        self._series = series
        self._command = ring.command
        self._is_gone = False
        self.pid = 0
        """As this process sees it; 0 where that is not known."""
        if self.runs():
            self.take_command()
        self.role = _role(ring, is_command=self.pid == root_pid)
        self._totals = np.zeros((len(SUMS), GENERATIONS), np.int64)
        self._longest = np.zeros(GENERATIONS, np.int64)
        self._told = self._totals.copy()
        self._place = series.enter(self.name, self.role, self.pid)
        self._placed_as = self.name

    @property
    def name(self) -> str:
        """As it has called itself last."""
        return name_of(self._command, self.ring.name)

    @property
    def lost(self) -> int:
        """Collections whose moment is not known."""
        return int(self._told[SUMS.index("lost")].sum())

    def take(self, *, has_ended: bool = False) -> Int64Array:
        """New records, which are counted."""
        records = self.ring.take(has_ended=has_ended)
        sizes = np.zeros((GENERATIONS, len(BOUNDS_SECONDS) + 1), np.int64)
        if len(records):
            generation, duration = records[:, GENERATION], records[:, DURATION_NS]
            count, pause, cpu, collected, _ = self._totals
            np.add.at(count, generation, 1)
            np.add.at(pause, generation, duration)
            np.add.at(cpu, generation, records[:, CPU_NS])
            np.add.at(collected, generation, records[:, COLLECTED])
            np.maximum.at(self._longest, generation, duration)
            np.add.at(sizes, (generation, np.searchsorted(_BOUNDS_NS, duration)), 1)
        self._tell(sizes)
        return records

    def _tell(self, sizes: Int64Array) -> None:
        lost = self.ring.lost()
        found = [lost.collections, lost.pause_ns, lost.cpu_ns, lost.collected, lost.collections]
        now = self._totals + np.array(found)
        if (now != self._told).any():
            if (name := self.name) != self._placed_as:
                self._series.leave(self._place)
                self._place = self._series.enter(name, self.role, self.pid, has_begun=False)
                self._placed_as = name
            self._series.add(self._place, now - self._told, sizes)
            self._told = now

    def runs(self) -> bool:
        """Whether the image still does."""
        with suppress(OSError):  # which says nothing of its end
            if not self.pid:
                self.pid = self.ring.image.find()
                self._is_gone = not self.pid
            return not self._is_gone and self.ring.image.runs_as(self.pid)
        return True

    def take_command(self) -> None:
        """The one that it shows by now, which may be a title."""
        with suppress(psutil.Error, OSError):
            self._command = psutil.Process(self.pid).cmdline() or self._command

    def end(self) -> None:
        """Nobody comes to its place from it any more, and its ring is removed."""
        self._series.leave(self._place)
        self.ring.forget()

    def described(self) -> ProbedProcess:
        """All about it by now."""
        unseen, ring, longest = self.ring.unseen(), self.ring, self.ring.lost().longest_ns
        count, pause, cpu, collected, lost = self._told
        return ProbedProcess(
            pid=self.pid,
            name=self.name,
            role=self.role,
            forked_from=ring.forked_from,
            command=ring.command,
            python=ring.python,
            generations=[
                GenerationTotals(
                    generation=each,
                    collections=int(count[each]),
                    pause_seconds=int(pause[each]) / 1e9,
                    longest_pause_seconds=int(max(self._longest[each], longest[each])) / 1e9,
                    cpu_seconds=int(cpu[each]) / 1e9,
                    objects_freed=int(collected[each]),
                    lost=int(lost[each]),
                    unseen=int(unseen[each]),
                )
                for each in range(GENERATIONS)
            ],
        )


def _role(ring: Ring, *, is_command: bool) -> str:
    if is_command:
        return "command"
    if ring.forked_from:
        return "fork"
    return "multiprocessing" if any("multiprocessing" in w for w in ring.command) else "program"
