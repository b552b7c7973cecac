"""What a person sees while trials run: how far, how long still, what came last."""

from collections import Counter
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Self

from rich import progress as rich_progress
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from harness import format as fmt
from harness.experiment.plan import Turn
from harness.experiment.result import cell_id
from harness.experiment.run import PlanProgress
from harness.render.safe_text import safe_text
from harness.running.lease import LIKELY_UNTIL
from harness.trial.spec import TrialFailure, TrialResult
from harness.verbs.caller import CountWatch

_SAY_EVERY_SECONDS = 20


def said_once(console: Console) -> Callable[[str], None]:
    """Says for whom a measurement waits, when it begins to."""
    said = set[tuple[str, bool]]()

    def say(owner: str) -> None:
        who, _, until = owner.partition(LIKELY_UNTIL)
        if (who, bool(until)) not in said:
            said.add((who, bool(until)))
            likely = "" if until else "; how long it takes is not known yet"
            words = (
                f"waiting for another measurement, {owner}{likely}: let it end, wait at most as "
                "long as --wait 10m says, or measure beside it with --wait no"
            )
            console.print(safe_text(words), soft_wrap=True)

    return say


class ProgressBar:
    """A bar with an estimate of the time left, on standard error; none where nobody watches."""

    def __init__(
        self,
        first_words: str,
        work: float,
        quiet: bool,
        *columns: ProgressColumn,
        speed_estimate_period: float = 30,
    ) -> None:
        self._console = console = Console(stderr=True)
        self._quiet = quiet
        self._done = 0
        self._bar = rich_progress.Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            *columns,
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
            transient=True,
            speed_estimate_period=speed_estimate_period,
        )
        self._task = self._bar.add_task(first_words, total=work)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()


class CountBar(ProgressBar, CountWatch):
    """How many commits, turns or series are done; a plain line for each where nobody watches."""

    def __init__(self, words: str, total: int, quiet: bool) -> None:
        super().__init__(words, total, quiet, MofNCompleteColumn(), speed_estimate_period=36_000)

    def say(self, words: str) -> None:
        """What is being done now."""
        self._bar.update(self._task, description=words)

    def advance(self, words: str, total: int | None = None) -> None:
        """One more is done."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, total=total, description=words[:48])

    def tell(self, words: str, *, is_bad: bool = False) -> None:
        """A line."""
        if not self._quiet:
            self._console.print(safe_text(words, "red" if is_bad else ""), soft_wrap=True)


class TrialProgress(ProgressBar, PlanProgress):
    """How many trials have ended; a plain line now and then where nobody watches."""

    def __init__(self, total: int, axes: list[str], quiet: bool) -> None:
        super().__init__(
            "warming up", total, quiet, MofNCompleteColumn(), speed_estimate_period=120
        )
        self._axes = axes
        self._total = total
        self._began = self._said = monotonic()
        self._skipped = 0
        self._reasons = set[str]()
        self._by_node = Counter[str]()
        self._says_owner = said_once(Console(stderr=True, quiet=quiet))

    def check(self, count: int) -> None:
        """Whether new trials would compare with so many stored ones is looked at."""
        self._bar.update(self._task, description="checking stored trials")
        if not self._quiet and not self._console.is_terminal:
            self._console.print(f"{count} trials are stored; checking that new ones compare")

    def skip(self, count: int) -> None:
        """So many trials were there already."""
        self._began = monotonic()
        self._done += count
        self._skipped += count
        self._bar.update(self._task, completed=self._done)

    def wait_for(self, owner: str) -> None:
        """Another process measures on this machine."""
        self._bar.update(self._task, description="waiting")
        self._says_owner(owner)

    def on_trial(self, turn: Turn, outcome: TrialResult | TrialFailure) -> None:
        """A trial has ended."""
        self._done += 1
        where = f"round {turn.round}" if turn.mode == "timing" else f"counting {turn.mode}"
        if isinstance(outcome, TrialResult) and outcome.node:
            where = f"{outcome.node}, {where}"
            self._by_node[outcome.node] += 1
        name = cell_id(turn.cell, self._axes)
        total = max(self._total, self._done)
        self._bar.update(
            self._task, completed=self._done, total=total, description=f"{where}: {name[:48]}"
        )
        if self._quiet:
            return
        if isinstance(outcome, TrialFailure):
            if outcome.reason not in self._reasons:  # the tables count how often
                self._console.print(safe_text(f"no result: {name}: {outcome.reason}", "red"))
            self._reasons.add(outcome.reason)
        if not self._console.is_terminal and monotonic() >= self._said + _SAY_EVERY_SECONDS:
            self._said = monotonic()
            left = (self._said - self._began) / (self._done - self._skipped) * (total - self._done)
            words = f"{self._done} of {total} trials, about {fmt.seconds(left)} left; last: {name}"
            if self._by_node:
                shares = (f"{node} {count}" for node, count in sorted(self._by_node.items()))
                words += f"; by node: {', '.join(shares)}"
            self._console.print(safe_text(words), soft_wrap=True)
