"""asv's ``version`` of a benchmark: figures of two versions are not one series.

It is a hash over what decides a figure: what the harness does from a trial's first line to the
number that asv stores, what is replayed, and the metric's row. The engines are not in it, since
they are what is compared.
"""

import ast
import json
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from harness.suites.canonical_source import canonical_source, imports
from harness.suites.grid import Tracked, schedule

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("gcbench", "harness", "workloads")

_TRIAL = "harness.trial.process"
"""What a trial's interpreter runs; the suite, which starts it, does not import it."""

ASIDE = frozenset(
    (
        "harness.metrics",  # the metric's own row is hashed
        "harness.statistics.paired_ratio",  # asv stores samples, no ratios of cells
        "harness.statistics.verdict",
        "harness.suites.track",  # what asv shows beside a figure
        "harness.suites.version",
        "workloads.recipe.arrivals",  # of these the schedule's hash is in
        "workloads.catalog",
        "workloads.recipe.lengths",
        "workloads.workload",
    )
)
"""Modules that are imported on the way and decide no figure, with all that only they import."""


def version(tracked: Tracked, suite: str, root: Path = _ROOT) -> str:
    """16 hex digits: the same for code that does the same, wherever it lies, on any Python.

    ``suite``: the module that has the grid, e.g. "harness.suites.serving".
    """
    defined = tracked.metric._replace(noun="", counted_as="")  # what it is called decides nothing
    row = json.dumps(defined._asdict(), sort_keys=True)
    replayed = _replayed(tracked.parameters.get("workload", ()))
    parts = [harness_hash(root, suite), *replayed, row]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


@lru_cache
def _replayed(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(schedule(name).sha256 for name in names)


@lru_cache
def harness_hash(root: Path, suite: str) -> str:
    """SHA-256 over the modules that decide a suite's figures, whatever they are called."""
    hashes = Hashes(root, needed(root, [suite, _TRIAL]))
    found = {hashes.of(name) for name in hashes.sources}
    return sha256("\n".join(sorted(found - {""})).encode()).hexdigest()


class Hashes:
    """A hash for each of some modules, over what it does and over the hashes of its imports."""

    def __init__(self, root: Path, sources: dict[str, ast.Module]) -> None:
        self.sources = sources
        self._root = root
        self._found: dict[str, str] = {}

    def of(self, name: str) -> str:
        """A module's, "" where it does nothing. Imports run in no circle, so this ends."""
        if name not in self._found:
            source = self.sources[name]
            hashes = tuple((each, self._of_import(*each)) for each in _imported(source))
            self._found[name] = _hash(source, hashes)
        return self._found[name]

    def _of_import(self, module: str, member: str = "") -> str | None:
        name = f"{module}.{member}" if member else module
        if name in self.sources:
            return self.of(name) or "nothing"
        if name.startswith("engines"):
            return None if member else "engines"
        return "aside" if name in ASIDE else None


def needed(root: Path, names: Iterable[str]) -> dict[str, ast.Module]:
    """These modules and what they import of the project, in functions too.

    Engines and what is `ASIDE` are not followed. Raises ValueError for one that is not there.
    """
    found: dict[str, ast.Module] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        if name not in found and name not in ASIDE and name.split(".")[0] in _PACKAGES:
            found[name] = _parsed(_file(root, name).read_text(encoding="utf-8"))
            wanted += _imports(root, found[name])
            wanted += [name.rpartition(".")[0] or name]
    return found


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def _imported(source: ast.Module) -> tuple[tuple[str, str], ...]:
    """The modules that it imports, each with "", and with each name that it takes out of it."""
    found: list[tuple[str, str]] = []
    for node in imports(source):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        else:
            path = node.module or ""
            found += [(path, ""), *((path, alias.name) for alias in node.names)]
    return tuple(found)


@cache  # suites have most modules in common
def _hash(source: ast.Module, hashes: tuple[tuple[tuple[str, str], str | None], ...]) -> str:
    of_import = dict(hashes)
    text = canonical_source(source, lambda module, member="": of_import[module, member])
    return sha256(text.encode()).hexdigest() if text else ""


def _imports(root: Path, source: ast.Module) -> Iterator[str]:
    for module, member in _imported(source):
        name = f"{module}.{member}" if member else module
        if module and (not member or _path(root, name).exists()):
            yield name


def _path(root: Path, name: str) -> Path:
    path = root.joinpath(*name.split("."))
    package = path / "__init__.py"
    return package if package.exists() else path.with_suffix(".py")


def _file(root: Path, name: str) -> Path:
    path = _path(root, name)
    if not path.exists():
        raise ValueError(f"{path} is not there, though the harness imports {name}")
    return path
