"""What a person sees while a server is under load: rate, in flight, TTFT, TPOT, the time left."""

import time

from rich.progress import MofNCompleteColumn

from harness import format as fmt
from harness.cli.progress import ProgressBar
from harness.load.progress import Snapshot


class LoadProgress(ProgressBar):
    """A bar of the requests that have ended."""

    def __init__(self, num_requests: int, quiet: bool) -> None:
        super().__init__("connecting", num_requests, quiet, MofNCompleteColumn())
        self._last: tuple[float, int] | None = None
        self._rate = 0.0

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
