"""A person, or a program, at the command line that has asked for a measurement."""

import atexit
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType

import click
from rich.console import Console

from harness.cli.exit_codes import ExitCode
from harness.cli.load_progress import LoadProgress
from harness.cli.progress import CountBar, TrialProgress
from harness.cli.say import say
from harness.cli.tell import command_line
from harness.experiment.executor import Executor
from harness.experiment.run import PlanProgress
from harness.machine.other_work import OtherWork
from harness.render.safe_text import safe_text
from harness.verbs.caller import Caller, CountWatch, LoadWatch
from harness.verbs.quiet import wait_until_quiet

_SAY_EVERY_SECONDS = 60


class CommandLine(Caller):
    """Is told on standard error what happens, unless it is ``quiet``."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self.command = command_line()
        self._quiet = quiet
        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, traceback)
        if self._cluster is not None and self._cluster.is_gone:
            # Ray's own tidying up needs a cluster, and crashes without one.
            atexit.register(os._exit, ExitCode.NOT_MEASURED)

    def say(self, words: str) -> None:
        """A line."""
        self._console.print(safe_text(words))

    def complain(self, words: str) -> None:
        """A line, for whoever is quiet, too."""
        say(words)

    @contextmanager
    def working(self, first_words: str) -> Iterator[Callable[[str], None]]:
        """A line that changes on a terminal, and a line each elsewhere."""
        if not self._console.is_terminal:
            yield self.say
            return
        with self._console.status(first_words) as status:
            yield lambda words: status.update(safe_text(words))

    def progress(self, total: int, axes: Sequence[str]) -> AbstractContextManager[PlanProgress]:
        """A bar, or a line now and then where nobody watches."""
        return TrialProgress(total, list(axes), self._quiet)

    def counting(self, words: str, total: int) -> AbstractContextManager[CountWatch]:
        """A bar, and a plain line for each where nobody watches."""
        return CountBar(words, total, self._quiet)

    def load(self, num_requests: int) -> AbstractContextManager[LoadWatch]:
        """A bar of the requests that have ended."""
        return LoadProgress(num_requests, self._quiet)

    def wait_until_quiet(self, seconds: float) -> OtherWork:
        """A line on a terminal, one a minute elsewhere."""
        if self._console.is_terminal:
            with self.working("waiting for a quiet machine") as say_now:
                return wait_until_quiet(seconds, say_now)
        last = -_SAY_EVERY_SECONDS * 1.0

        def say_seldom(words: str) -> None:
            nonlocal last
            if time.monotonic() - last >= _SAY_EVERY_SECONDS:
                last = time.monotonic()
                self.say(words)

        return wait_until_quiet(seconds, say_seldom)

    def executor(self, timeout_seconds: float) -> Executor:
        """The one that whoever called the command line has brought (see `main`), if any."""
        make = click.get_current_context().obj
        made: Executor = make(timeout_seconds) if make else super().executor(timeout_seconds)
        return made
