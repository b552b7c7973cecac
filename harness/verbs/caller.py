"""Who has asked for a measurement: what they typed, what they see meanwhile, where it runs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Self

from harness.experiment.executor import Executor
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.ray.cluster import EVERY_NODE, Cluster, WantedNodes
from harness.experiment.ray.connection import connected
from harness.experiment.run import PlanProgress
from harness.load.progress import Snapshot
from harness.machine.other_work import OtherWork
from harness.verbs.quiet import wait_until_quiet


class CountWatch:
    """Sees how many of a number of things are done, and says nothing of it."""

    def say(self, words: str) -> None:
        """What is being done now."""

    def advance(self, words: str, total: int | None = None) -> None:
        """One more is done, of so many."""

    def tell(self, words: str, *, is_bad: bool = False) -> None:
        """A sentence on one that is done."""


class LoadWatch:
    """Sees how far a server's load has come, and says nothing of it."""

    def look(self, now: Snapshot) -> None:
        """How it stands."""

    def wait_for(self, owner: str) -> None:
        """Another process measures on this machine; told again and again until it has ended."""


class Caller:
    """A program that asks by `gcbench.compare` and the like, and looks at what it gets.

    Entered and left, so that a cluster is connected as long as it asks.
    """

    command = ""
    """What was typed, for the result to name."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def say(self, words: str) -> None:
        """A sentence on what happens now."""

    def complain(self, words: str) -> None:
        """A sentence on what cannot be had, which the result says, too."""

    def working(self, first_words: str) -> AbstractContextManager[Callable[[str], None]]:
        """Something that takes a while; what it gives says how far that has come."""
        return nullcontext(self.say)

    def progress(self, total: int, axes: Sequence[str]) -> AbstractContextManager[PlanProgress]:
        """Of so many trials, whose cells differ in some axes."""
        return nullcontext(PlanProgress())

    def counting(self, words: str, total: int) -> AbstractContextManager[CountWatch]:
        """Of so many things that are done one after the other."""
        return nullcontext(CountWatch())

    def load(self, num_requests: int) -> AbstractContextManager[LoadWatch]:
        """Of so many requests to a server."""
        return nullcontext(LoadWatch())

    def wait_until_quiet(self, seconds: float) -> OtherWork:
        """Wait until nobody else is at work. Raises BusyMachineError after ``seconds``."""
        return wait_until_quiet(seconds, self.say)

    def executor(self, timeout_seconds: float) -> Executor:
        """Runs the trials, where no cluster is named."""
        return LocalExecutor(timeout_seconds)

    def cluster(self, address: str, wanted: WantedNodes = EVERY_NODE) -> Cluster:
        """The cluster, connected once. Raises ClusterError."""
        if self._cluster is None:
            self._cluster = self._stack.enter_context(connected(address, wanted))
        return self._cluster
