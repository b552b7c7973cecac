"""asv's ``version`` of a benchmark: figures of two versions are not one series.

It is a hash over what says how a figure is measured: the source of the harness, what is replayed
and the metric's row. The engines are not in it, since they are what is compared.
"""

import ast
import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from harness.suites.grid import Tracked, schedule

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("gcbench", "harness", "workloads")

_MEASURING = (
    "harness.trial.process",
    "harness.experiment.local_executor",
    "harness.experiment.plan",
)
"""A trial's inside, its surroundings, and which trials there are."""

_APART = "harness.metrics"
"""Of this table only the metric's own row counts."""


def version(tracked: Tracked, suite: str, root: Path = _ROOT) -> str:
    """16 hex digits: the same for equal sources, wherever they lie and whatever Python reads them.

    ``suite``: the module that has the grid, e.g. "harness.suites.serving".
    """
    row = json.dumps(tracked.metric._asdict(), sort_keys=True)
    replayed = _replayed(tracked.parameters.get("workload", ()))
    parts = [harness_hash(root, suite), *replayed, row]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


@lru_cache
def _replayed(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(schedule(name).sha256 for name in names)


@lru_cache
def harness_hash(root: Path, suite: str) -> str:
    """SHA-256 over the modules that measure, the suite's grid, and their names."""
    files = needed(root, _MEASURING)
    files |= {name: _file(root, name) for name in (suite, "harness.suites.grid")}
    digest = sha256()
    for name, path in sorted(files.items()):
        if name != _APART:
            lines = path.read_text(encoding="utf-8").splitlines()
            digest.update("\n".join([name, *lines, ""]).encode())
    return digest.hexdigest()


def needed(root: Path, names: Iterable[str]) -> dict[str, Path]:
    """These modules and all of the project but its engines that they import, in functions too."""
    found: dict[str, Path] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name not in found and name.split(".")[0] in _PACKAGES:
            found[name] = _file(root, name)
            wanted += _imports(root, ast.parse(found[name].read_text(encoding="utf-8")))
            wanted += [name.rpartition(".")[0] or name]
    return found


def _imports(root: Path, source: ast.Module) -> Iterator[str]:
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            inner = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in inner if _path(root, name).exists())


def _path(root: Path, name: str) -> Path:
    path = root.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _file(root: Path, name: str) -> Path:
    path = _path(root, name)
    if not path.exists():
        raise ValueError(f"{path} is not there, though the harness imports {name}")
    return path
