"""asv, asked to measure one commit and to put the results into a folder of its own."""

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from typing import Any, NamedTuple

from harness.files import indented, write_whole, writing
from harness.running.group import started
from harness.tracking.asv.checkout import repository
from harness.tracking.asv.config import read_config
from harness.tracking.asv.result_files import read_figures
from harness.tracking.nightly.lock import marked

RESULTS = "results"
"""The folder of results in the one that a measurement was given."""
_PATHS = {"benchmark_dir": "benchmarks", "env_dir": "env", "html_dir": "html"}
_SOME_FAILED = 2
_ERROR = re.compile(r"[\w.]*(?:Error|Exception)\b|ERROR:|error:|fatal:")


class Asv(NamedTuple):
    """How asv is asked. ``folder`` is the nightly run's, ``machine`` the name of this one."""

    config: Path
    folder: Path
    machine: str

    def measure(self, commit: str, target: Path, *, bench: str = "") -> str:
        """Measure ``commit``, all benchmarks or those of a regular expression; "" or why not.

        ``target`` gets the results and what asv has printed. One that fails is asv's null, and no
        reason; that all of them do is one. Raises StoreError where ``target`` cannot be written.
        """
        with writing(target):
            target.mkdir(parents=True)
        settings = absolute(self.config) | {"results_dir": str(target.resolve() / RESULTS)}
        write_whole(target / "asv.conf.json", indented({"version": 1} | settings))
        chosen = ["--bench", bench] if bench else []
        status = self._ask(
            target,
            "run",
            "--record-samples",
            "--show-stderr",
            "--machine",
            self.machine,
            *chosen,
            f"{commit}^!",
        )
        results, log = target / RESULTS, target / "log"
        stored = list((results / self.machine).glob(f"{commit[:8]}-*.json"))
        if status not in (0, _SOME_FAILED) or not stored:
            return f"asv ended with status {status}: {_last_line(log)} ({log} has more)"
        # Of a commit that does not install asv keeps nulls, and ends with status 0.
        if all({*each.outcome} <= {"failed"} for each in read_figures(results, [])):
            return f"no benchmark could be run: {_last_line(log, _ERROR)} ({log} has more)"
        return ""

    def _ask(self, target: Path, *arguments: str) -> int:
        command = [sys.executable, "-m", "asv", "--config", str(target / "asv.conf.json")]
        with (
            writing(target),
            (target / "log").open("wb") as log,
            started(
                [*command, *arguments],
                stdin=DEVNULL,
                stdout=log,
                stderr=STDOUT,
                cwd=self.config.parent,
                env=marked(self.folder) | {"PATH": _own_commands()},
            ) as asv,
        ):
            asv.wait()
            return asv.end()


def _own_commands() -> str:
    """The search path, on which benchmarks that call gcbench find at least this one."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def absolute(config: Path) -> dict[str, Any]:
    """asv's configuration with whole paths, so that a copy of it can lie anywhere.

    Raises ValueError where it cannot be read, or its repository is not a folder of this machine.
    """
    settings, here = read_config(config), config.resolve().parent
    settings |= {name: str(here / settings.get(name, usual)) for name, usual in _PATHS.items()}
    return settings | {"repo": str(repository(config))}


def refuse_without_asv() -> None:
    """Raise ValueError where asv is not installed."""
    if find_spec("asv") is None:
        raise ValueError(f"asv is not installed here; run {sys.executable} -m pip install asv")


def _last_line(log: Path, like: re.Pattern[str] = re.compile("")) -> str:
    """The last that asv has said, less what it draws around it; ``like`` something if it can be."""
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    said = [line.strip(" ·") for line in lines if line.strip(" ·")]
    chosen = [line for line in said if like.match(line)] or said
    return chosen[-1][:300] if chosen else "it said nothing"
