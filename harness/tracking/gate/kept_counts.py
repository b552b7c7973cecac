"""Counts of a commit, kept by all that decides them: the same files are not counted twice."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engines.cache import cache_root
from engines.registry import ENGINES
from harness.experiment.executor import TrialOutcome
from harness.experiment.plan import Plan, Turn, exact_turns
from harness.experiment.store import TrialKey
from harness.machine.clean_environment import lasting_environment
from harness.machine.installed import editable_sha256, installed
from harness.tracking.gate.trees import Tree
from harness.trial.origin import sources_sha256
from harness.trial.spec import TRIAL_RESULT_SCHEMA, TrialResult
from workloads.files.whole_file import replacing

_SCHEMA = f"gcbench.kept-counts/1 of {TRIAL_RESULT_SCHEMA}"
_MOST_KEPT = 512
"""Files, of some 100 KB each; those that have been read or written last stay."""
_FOLDER = "/gcbench-tree"
"""What stands in a kept file for the folder that the commit was laid out in."""
_OURS = ("engines", "harness", "gcbench")
"""What runs a trial beside the engine: a newer one may count otherwise."""


class KeptCounts(NamedTuple):
    """Counts of commits that hold ``package``, in files of one folder."""

    package: str
    folder: Path

    @classmethod
    def of_user(cls, package: str) -> "KeptCounts":
        """In the user's cache."""
        return cls(package, cache_root() / "gate")

    def load(self, plan: Plan, tree: Tree) -> dict[TrialKey, TrialResult]:
        """Results of the plan's trials of a commit that were kept."""
        found: dict[TrialKey, TrialResult] = {}
        for key, path in self._paths(plan, tree):
            with suppress(OSError, msgspec.MsgspecError):  # it is measured anew then
                content = path.read_bytes().replace(_FOLDER.encode(), _in_json(tree.folder))
                found[key] = msgspec.json.decode(content, type=TrialResult)
                os.utime(path)
        return found

    def save(self, plan: Plan, tree: Tree, outcomes: Mapping[TrialKey, TrialOutcome]) -> None:
        """Keep the results of a commit, where anything can be written."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            for key, path in self._paths(plan, tree):
                outcome = outcomes.get(key)
                if isinstance(outcome, TrialResult) and not outcome.invalid and not path.exists():
                    content = msgspec.json.encode(outcome)
                    with replacing(path) as temporary:
                        temporary.write_bytes(
                            content.replace(_in_json(tree.folder), _FOLDER.encode())
                        )
            self._forget_the_oldest()

    def _paths(self, plan: Plan, tree: Tree) -> Iterator[tuple[TrialKey, Path]]:
        code = {
            name: sources_sha256(*_engine_files(name, Path(tree.folder, Path(self.package).name)))
            for name in {turn.cell.engine for turn in _of(plan, tree)}
        }
        editable = cache(lambda interpreter: editable_sha256(interpreter, self.package))
        alike: Counter[str] = Counter()
        for turn in _of(plan, tree):
            asked = _asked(plan, turn, editable)
            decides = _hash([_SCHEMA, tree.package_sha, code[turn.cell.engine], asked])
            name = f"{decides[:32]}-{alike[decides]}.json"  # equal trials are kept apart
            alike[decides] += 1
            yield turn.key, self.folder / name

    def _forget_the_oldest(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in files[:-_MOST_KEPT]:
            path.unlink(missing_ok=True)


def _engine_files(engine: str, package: Path) -> list[Path]:
    """Where the code of an engine lies, in the tree's ``package`` or installed, and ours."""
    top = ENGINES.load(engine).__module__.partition(".")[0]
    names = dict.fromkeys((top, *_OURS))
    return [package if name == package.name else _installed_files(name) for name in names]


def _installed_files(top: str) -> Path:
    """The folder of a package that has been imported, or the file of a module."""
    file = Path(sys.modules[top].__file__ or "")
    return file.parent if file.stem == "__init__" else file


def _of(plan: Plan, tree: Tree) -> Iterable[Turn]:
    """All but what comes with a file of its own, which says where outputs differ, and what hangs
    on the C library and the processor, too.
    """
    ours = (turn for turn in exact_turns(plan) if turn.cell.release == tree.folder)
    return (turn for turn in ours if turn.mode not in ("outputs", "instructions"))


def _asked(plan: Plan, turn: Turn, editable: Callable[[Path], str]) -> dict[str, Any]:
    """What the trial is asked, and what runs it."""
    launch = ENGINES.load(turn.cell.engine).launch(turn.cell.python, turn.cell.release)
    # The launch's own path names the tree's folder or one made for it; the rest is the user's.
    users = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    interpreter = Path(launch.interpreter)
    return {
        "cell": msgspec.structs.replace(turn.cell, release=""),
        "mode": turn.mode,
        "seed": turn.seed,
        "max_steps": turn.max_steps,
        "trace_every": plan.trace_every if turn.mode == "opcodes" else 0,
        "schedule": plan.schedules[turn.cell.workload],
        "environment": lasting_environment() | launch.environment | users,
        "installed": installed(interpreter),
        "editable": editable(interpreter),
    }


def _hash(value: Any) -> str:
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def _in_json(folder: str) -> bytes:
    return msgspec.json.encode(folder)[1:-1]
