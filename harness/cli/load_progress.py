"""What a person sees while a server is under load: rate, in flight, TTFT, TPOT, the time left."""

import time

from rich.console import Console
from rich.progress import MofNCompleteColumn

from harness import format as fmt
from harness.cli.progress import ProgressBar, said_once
from harness.load.progress import Snapshot
from harness.verbs.caller import LoadWatch


class LoadProgress(ProgressBar, LoadWatch):
    """A bar of the requests that have ended."""

    def __init__(self, num_requests: int, quiet: bool) -> None:
        super().__init__("connecting", num_requests, quiet, MofNCompleteColumn())
        self._last: tuple[float, int] | None = None
        self._rate = 0.0
        self._says_owner = said_once(Console(stderr=True))

    def wait_for(self, owner: str) -> None:
        """Another process measures on this machine."""
        self._says_owner(owner)

    def look(self, now: Snapshot) -> None:
        """Show how far it is."""
        at = time.monotonic()
        if self._last is None or at - self._last[0] >= 1:
            if self._last is not None:
                self._rate = (now.ended - self._last[1]) / (at - self._last[0])
            self._last = at, now.ended
        words = f"{self._rate:,.1f} req/s, {now.sent - now.ended:,} in flight"
        if failed := now.ended - now.completed:
            words += f", {failed:,} failed"
        if now.completed:
            words += f", TTFT {fmt.seconds(now.ttft_seconds)}"
        if now.tpot_seconds:
            words += f", TPOT {fmt.seconds(now.tpot_seconds)}"
        self._bar.update(self._task, completed=now.ended, description=words)
