"""What `gcbench probe` writes."""

import msgspec

from harness.result.result import Result


class GenerationTotals(msgspec.Struct, frozen=True):
    """A process's collections of one generation.

    ``lost``: those whose moment is not known. ``unseen``: those that are in no other figure, since
    the program had emptied ``gc.callbacks``, as `gc.get_stats` had them at its exit.
    """

    generation: int
    collections: int
    pause_seconds: float
    longest_pause_seconds: float
    cpu_seconds: float
    objects_freed: int
    lost: int
    unseen: int = 0


_ADDED = ("collections", "pause_seconds", "cpu_seconds", "objects_freed", "lost", "unseen")


class ProbedProcess(msgspec.Struct, frozen=True):
    """One image of a process; what it was before an exec is another. ``role``: how it came to be.

    ``pid``: as gcbench sees it, 0 where it ended in another PID namespace before it was found.
    ``images``: how many are added up here, with a PID of 0 if several.
    """

    pid: int
    name: str
    role: str
    forked_from: int
    command: list[str]
    python: str
    generations: list[GenerationTotals]
    images: int = 1

    def plus(self, other: "ProbedProcess") -> "ProbedProcess":
        """Both added up, under the name and role of this one."""
        generations = [
            GenerationTotals(
                generation=a.generation,
                longest_pause_seconds=max(a.longest_pause_seconds, b.longest_pause_seconds),
                **{field: getattr(a, field) + getattr(b, field) for field in _ADDED},
            )
            for a, b in zip(self.generations, other.generations, strict=True)
        ]
        images = self.images + other.images
        return ProbedProcess(0, self.name, self.role, 0, [], self.python, generations, images)

    @property
    def collections(self) -> int:
        """Of all generations."""
        return sum(each.collections for each in self.generations)

    @property
    def unseen(self) -> int:
        """Of all generations."""
        return sum(each.unseen for each in self.generations)

    @property
    def pause_seconds(self) -> float:
        """Of all generations."""
        return sum(each.pause_seconds for each in self.generations)


class NotProbed(msgspec.Struct, frozen=True):
    """An interpreter that ran without the probe."""

    pid: int
    name: str
    reason: str


class ExplainedPause(msgspec.Struct, frozen=True):
    """A pause over the limit: where the program was, and what its young generations held.

    ``objects``: how many by type, about; none where the pause before of that generation was short.
    """

    process: str
    pid: int
    start_ns: int
    seconds: float
    generation: int
    file: str
    line: int
    function: str
    objects: list[tuple[str, int]]
    python: str


class ProbeResult(Result, frozen=True, kw_only=True, tag="probe"):
    """Collections and pauses of each process that a command has started.

    ``name``: the command. Moments are of CLOCK_MONOTONIC of the boot that ``boot_id`` names.
    ``status``: the command's, of a signal negative. ``own_*``: what watching took, by gcbench.
    ``long_pauses``: the longest of those that were asked for.
    """

    status: int
    began_ns: int
    wall_seconds: float
    boot_id: str
    processes: list[ProbedProcess]
    not_probed: list[NotProbed]
    own_cpu_seconds: float | None = None
    own_peak_bytes: int | None = None
    long_pauses: list[ExplainedPause] = []
