"""Results on disk: one folder an experiment, each file written whole or not at all.

```
results/runs/<experiment>/plan.json             what was asked for, and its hash
                          trials/<key>.json     one finished trial, or why it gave no result
                          rows/<key>-*.parquet  rows per request, step and collection
                          schedule-<hash>.npz   what was replayed
                          result.json           the summary, written last
                          incomplete.txt        there as long as trials are missing
```
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeVar
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.experiment.result import ExperimentResult
from harness.experiment.trial_key import TrialKey, canonical_sha256, trial_key
from harness.files import (
    StoreError,
    decode_versioned,
    indented,
    read_rows,
    set_aside,
    write_json,
    write_rows,
    write_whole,
    writing,
)
from harness.machine.held import HeldError, held
from harness.result.result import RESULT_FILE, RESULT_SCHEMA
from harness.trial.spec import TRIAL_RESULT_SCHEMA, TrialFailure, TrialResult
from workloads.files.whole_file import TEMPORARY

__all__ = [
    "INCOMPLETE_FILE",
    "RUNS",
    "RunStore",
    "StoreError",
    "TrialKey",
    "TrialRows",
    "load_experiment",
    "new_name",
    "read_rows",
    "trial_key",
    "write_json",
    "write_rows",
]

AnyPlan = TypeVar("AnyPlan")

RUNS = Path("results/runs")
"""The folder of experiments where no other is given."""

INCOMPLETE_FILE = "incomplete.txt"
"""A file of this name stands in the folder of an experiment whose trials are not all there."""

STORED_SCHEMA = f"gcbench.stored-trial/2 of {TRIAL_RESULT_SCHEMA}"
PLAN_SCHEMA = "gcbench.plan/3"

RowColumns = Mapping[str, NDArray[Any]]
"""A table: equally long arrays ``[num_rows]`` by name."""


class TrialRows(NamedTuple):
    """What a timing trial stamped, a table a field; moments are nanoseconds.

    ``requests``: the columns of `harness.trial.recorder.RequestStamps`; ``steps``: those of
    `harness.trial.recorder.STEP_COLUMNS`; ``collections``: those of
    `harness.collector.probe.Events`, and ``process``, a place in `TrialResult.processes`.
    """

    requests: RowColumns
    steps: RowColumns
    collections: RowColumns


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: TrialKey
    result: TrialResult | None = None
    failure: TrialFailure | None = None
    schema: str = STORED_SCHEMA


class _Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    plan: Any
    schema: str = PLAN_SCHEMA


def _has_grown(begun: _Plan, now: _Plan) -> bool:
    """Whether ``now`` is the plan begun with more rounds, and nothing else."""
    rounds = msgspec.to_builtins(now.plan).get("rounds", 0)
    has_more = begun.plan.get("rounds", 0) < rounds
    return has_more and canonical_sha256({**begun.plan, "rounds": rounds}) == now.sha256


class RunStore:
    """One experiment's folder. ``warnings`` collects a sentence for each file set aside.

    Raises ValueError where ``name`` is not the name of a folder directly under ``root``.
    """

    def __init__(self, root: Path, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name):
            raise ValueError(
                f"{name!r} cannot name an experiment; use letters, digits, '.', '_' and '-'"
            )
        self.name = name
        self.folder = Path(root) / name
        self.warnings: list[str] = []

    def create(self) -> None:
        """Make the folder, or take the one that is there. Raises StoreError if it cannot be."""
        with writing(self.folder):
            for part in ("trials", "rows"):
                (self.folder / part).mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.folder):
                pass

    @contextmanager
    def writer(self) -> Iterator[None]:
        """Make the folder, if it is not there, and be the only one that writes to it.

        Raises StoreError where it cannot be written, or another process writes to it.
        """
        self.create()
        with ExitStack() as stack:
            with writing(self.folder):
                try:
                    stack.enter_context(held(self.folder / "writer.lock"))
                except HeldError as error:
                    raise StoreError(
                        f"{self.folder} is being written by {error.owner}; let it end, or begin a "
                        "new experiment"
                    ) from None
                for unfinished in self.folder.rglob(f"*{TEMPORARY}"):
                    unfinished.unlink()  # of a writer that was killed
            yield

    def adopt_plan(self, plan: Any) -> bool:
        """Store what the experiment is to do; True where it was begun before and is resumed.

        ``plan`` is anything msgspec encodes. It may ask for more ``rounds`` than the folder's, and
        takes its place then. Raises StoreError where the folder holds another plan, or one that
        cannot be read.
        """
        path = self.folder / "plan.json"
        record = _Plan(sha256=canonical_sha256(plan), plan=plan)
        if not path.exists():
            write_whole(path, indented(record))
            return False
        try:
            begun = decode_versioned(path, _Plan, PLAN_SCHEMA)
        except StoreError as error:
            raise StoreError(
                f"{error}; begin a new experiment without its name, the trials stay where they are"
            ) from error
        if begun.sha256 == record.sha256:
            return True
        if not _has_grown(begun, record):
            raise StoreError(
                f"{self.folder} holds an experiment with another plan (see plan.json); "
                "give the options it was begun with, or begin a new one without its name"
            )
        write_whole(path, indented(record))
        return True

    def load_plan(self, type_: type[AnyPlan]) -> AnyPlan:
        """What the experiment is to do, as a ``type_``. Raises StoreError."""
        path = self.folder / "plan.json"
        try:
            return msgspec.convert(decode_versioned(path, _Plan, PLAN_SCHEMA).plan, type_)
        except msgspec.ValidationError as error:
            raise StoreError(f"{path} cannot be read: {error}") from error

    def mark_incomplete(self) -> None:
        """Say in the folder that trials are missing, however the run may end. Raises StoreError."""
        words = f"Trials are missing here; go on with the same command and --resume {self.name}\n"
        write_whole(self.folder / INCOMPLETE_FILE, words.encode())

    def mark_complete(self) -> None:
        """Take that back: all trials have ended. Raises StoreError."""
        with writing(self.folder):
            (self.folder / INCOMPLETE_FILE).unlink(missing_ok=True)

    def schedule_path(self, schedule_sha256: str) -> Path:
        """Where the schedule with this hash is kept."""
        return self.folder / f"schedule-{schedule_sha256[:12]}.npz"

    def rows_path(self, key: TrialKey) -> Path:
        """Where a trial leaves its rows: arrays named ``TABLE.COLUMN`` in an ``.npz``."""
        return self.folder / "rows" / f"{key}.npz"

    def outputs_path(self, key: TrialKey) -> Path:
        """Where a trial in mode ``outputs`` leaves what steps gave, an ``.npz``."""
        return self.folder / "rows" / f"{key}-outputs.npz"

    def keep_rows(self, key: TrialKey) -> None:
        """Make Parquet of the rows that a trial has left, ``<key>-<table>.parquet`` each table."""
        left = self.rows_path(key)
        if not left.exists():
            return
        tables: dict[str, dict[str, NDArray[Any]]] = {}
        try:
            with left.open("rb") as file, np.load(file) as columns:
                for name in columns.files:
                    table, column = name.split(".")
                    tables.setdefault(table, {})[column] = columns[name]
            for table, rows in tables.items():
                write_rows(left.with_name(f"{key}-{table}.parquet"), rows)
        except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as error:
            # Anybody's disk may have damaged them. The trial's metrics are not made of them.
            self.warnings.append(
                f"rows of {key} cannot be read: {error}; set aside as {set_aside(left).name}"
            )
        else:
            left.unlink()

    def load_rows(self, key: TrialKey) -> TrialRows:
        """The rows that `keep_rows` has kept. Raises StoreError."""
        folder = self.rows_path(key).parent
        return TrialRows(
            *(read_rows(folder / f"{key}-{table}.parquet") for table in TrialRows._fields)
        )

    def save_trial(self, key: TrialKey, outcome: TrialResult | TrialFailure) -> None:
        """Keep a trial's outcome; an earlier outcome of the same key is replaced."""
        stored = (
            _Stored(key=key, result=outcome)
            if isinstance(outcome, TrialResult)
            else _Stored(key=key, failure=outcome)
        )
        write_whole(self.folder / "trials" / f"{key}.json", msgspec.json.encode(stored))

    def load_trials(self) -> dict[TrialKey, TrialResult | TrialFailure]:
        """All stored outcomes by key; files that cannot be read are set aside with a warning."""
        outcomes: dict[TrialKey, TrialResult | TrialFailure] = {}
        for path in sorted((self.folder / "trials").glob("*.json")):
            try:
                key, outcome = read_trial(path)
            except StoreError as problem:
                self.warnings.append(f"{problem}; set aside as {set_aside(path).name}")
            else:
                outcomes[key] = outcome
        return outcomes


def read_trial(path: Path) -> tuple[TrialKey, TrialResult | TrialFailure]:
    """A stored trial and its key. Raises StoreError where the file holds anything else."""
    stored = decode_versioned(path, _Stored, STORED_SCHEMA)
    outcome = stored.result or stored.failure
    if outcome is None:
        raise StoreError(f"{path} holds neither a result nor a failure")
    key = stored.key
    if str(key) != path.stem or key != trial_key(key.round, key.index, outcome.cell, outcome.mode):
        raise StoreError(f"{path} holds another trial than its name says")
    return key, outcome


def load_experiment(path: Path) -> ExperimentResult:
    """Read an experiment's summary from its file or folder. Raises StoreError."""
    path = Path(path)
    if path.is_dir():
        path /= RESULT_FILE
    if not path.exists():
        raise StoreError(f"there is no {path}; the experiment may not have come to its end")
    return decode_versioned(path, ExperimentResult, RESULT_SCHEMA)


def new_name(root: Path, label: str, now: datetime | None = None) -> str:
    """Reserve a folder for a new experiment and return its name: "2026-11-21T0314-LABEL".

    Making the folder is what makes the name unique among processes that start together.
    Raises StoreError.
    """
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", label).strip("-.") or "experiment"
    base = f"{(now or datetime.now()):%Y-%m-%dT%H%M}-{slug[:60]}"
    name, suffix = base, 2
    with writing(root):
        Path(root).mkdir(parents=True, exist_ok=True)
        if root == RUNS and not (ignored := root / ".gitignore").exists():
            ignored.write_text("*\n")  # in somebody's repository
        while True:
            try:
                (Path(root) / name).mkdir()
            except FileExistsError:
                name, suffix = f"{base}-{suffix}", suffix + 1
            else:
                return name
