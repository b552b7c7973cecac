"""``gcbench report RESULTS``: what changed in stored results, and their figures for other tools."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from harness import format as fmt
from harness.cli.say import say
from harness.cli.tell import checked, command_line
from harness.files import write_output, writing
from harness.format import printable
from harness.probed.read_log import rows
from harness.result.result import RESULT_FILE
from harness.tracking.history_result import HistoryResult

if TYPE_CHECKING:
    import pandas as pd


_SAY_EVERY_SECONDS = 10


class ResultsQuestion(NamedTuple):
    """What is asked of stored results alone."""

    between: tuple[str, str] | None
    metrics: list[str] | None
    csv: str | None
    otava: str | None

    @property
    def words(self) -> list[str]:
        """The flags that decide what is shown."""
        chosen = ["--metric", ",".join(self.metrics)] if self.metrics else []
        return [*(("--between", *self.between) if self.between else ()), *chosen]


def is_results(name: str) -> bool:
    """Whether it is a configuration of asv's, or a folder that is no run's own."""
    path = Path(name)
    if path.is_file():
        return path.name.endswith(".conf.json")
    of_a_run = (RESULT_FILE, "plan.json", "trials")
    return path.is_dir() and not any((path / each).exists() for each in of_a_run)


def read_results(name: str, asked: ResultsQuestion, *, is_shown: bool) -> HistoryResult:
    """What changed there; figures are written where that was asked for.

    What could not be read is said at once unless it ``is_shown`` with the rest. Imports pandas when
    called. Raises ValueError where nothing can be read, or what is asked for is not there.
    """
    from harness.tracking.history import load_history
    from harness.tracking.what_changed import of_metrics, what_changed

    checked(asked.csv, "--csv")
    found = load_history(name)
    if not is_shown:
        for problem in found.problems:
            say(problem)
    if asked.metrics:
        found = of_metrics(found, asked.metrics)
    result = what_changed(
        found, name, between=asked.between, command=command_line(), look=_said_seldom()
    )
    if asked.csv:
        _write_csv(found.figures.join(found.parameters, on="series"), asked.csv)
    if asked.otava:
        _write_otava(found.figures, Path(asked.otava))
    return result


def _said_seldom() -> Callable[[int, int], None]:
    """Says now and then how many series have been looked through, and how long the rest takes."""
    began = last = monotonic()

    def look(done: int, total: int) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= _SAY_EVERY_SECONDS:
            last = now
            left = (now - began) / done * (total - done) if done else 0.0
            say(f"{done:,} of {total:,} series looked through, about {fmt.seconds(left)} left")

    return look


def write_collections(log: Path, path: str | None) -> None:
    """A log of collections as a table, a collection a row. Raises StoreError, ValueError."""
    if not path:
        raise ValueError(
            f"{log} is a log of collections; gcbench report {log} --csv - prints it, and gcbench "
            f"load URL --probe {log} tells which gap was whose pause"
        )
    checked(path, "--csv")
    if path == "-":
        csv.writer(sys.stdout, lineterminator="\n").writerows(rows(log))
        return
    with writing(Path(path), "--csv FILE"), Path(path).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows(log))


def _write_csv(figures: "pd.DataFrame", path: str) -> None:
    """All figures, a row each; samples, which are lists, are left out. Raises StoreError."""
    text = figures.drop(columns="samples").to_csv(index=False, lineterminator="\n")
    if path == "-":
        is_seen = sys.stdout.isatty()
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if is_seen else text)
    else:
        write_output(path, text.encode(), "--csv FILE")


def _write_otava(figures: "pd.DataFrame", folder: Path) -> None:
    """One file a test, and the configuration that names them. Raises StoreError, ValueError."""
    from harness.tracking.otava import otava_files

    files = otava_files(figures)
    if not files:
        raise ValueError("--otava: these results hold no current figure of asv's to export")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_output(folder / name, text.encode(), "--otava FOLDER")
