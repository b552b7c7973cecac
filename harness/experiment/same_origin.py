"""Whether trials may stand in one result: one machine, and one interpreter and code each engine."""

from collections.abc import Iterable, Iterator

from harness.axes import Cell
from harness.machine.describe import GIB, Machine
from harness.trial.spec import TrialResult

_MACHINE = (
    "cpu_model",
    "architecture",
    "cores_logical",
    "cores_usable",
    "cpu_quota",
    "kernel",
    "os",
    "virtualization",
    "governor",
    "gpus",
)
"""Fields that are the machine's own; the others belong to the interpreter and its packages."""

Launched = tuple[str, str, str]


def launched(cell: Cell) -> Launched:
    """What decides which interpreter, packages and engine a cell's trials run."""
    return cell.engine, cell.python, cell.release


def origin_differences(
    stored: TrialResult, other: TrialResult, *, by_commit: bool = True
) -> list[str]:
    """In what two trials differ that should not, in words; what is not known does not differ.

    Trials that were launched differently may differ in all but the machine. Not ``by_commit``:
    commits may differ where the sources that decide figures are the same.
    """
    found = list(machine_differences(stored.machine, other.machine))
    if launched(stored.cell) != launched(other.cell):
        return found
    old, new = _build(stored.interpreter), _build(other.interpreter)
    if old and new and old != new:
        found.append(_changed("interpreter", old, new))
    found += _code(stored, other, by_commit)
    if stored.dependencies and other.dependencies:
        names = sorted({*stored.dependencies, *other.dependencies})
        versions = [
            (name, stored.dependencies.get(name, "none"), other.dependencies.get(name, "none"))
            for name in names
        ]
        found += [
            _changed(f"dependency {name}", old, new) for name, old, new in versions if old != new
        ]
    return found


def mixed(results: Iterable[TrialResult]) -> list[str]:
    """In what the trials of one result differ that must not: sentences, none where all agree."""
    first: dict[Launched, TrialResult] = {}
    for result in results:
        first.setdefault(launched(result.cell), result)
        for other in first.values():
            if found := origin_differences(other, result, by_commit=False):
                what = "; ".join(found)
                return [f"Trials that should agree differ in {what}."]
    return []


def machine_differences(stored: Machine | None, other: Machine | None) -> Iterator[str]:
    """In what two machines differ, in words; nothing where either is not known."""
    if stored is None or other is None:
        return
    pairs = [(name, getattr(stored, name), getattr(other, name)) for name in _MACHINE]
    pairs.append(("memory", _gib(stored), _gib(other)))
    changed = [(name, old, new) for name, old, new in pairs if old != new]
    if changed:
        name, old, new = changed[0]
        yield _changed(f"machine: {name.replace('_', ' ')}", _shown(old), _shown(new))


def _gib(machine: Machine) -> str:
    return f"{machine.memory_bytes / GIB:.0f} GiB"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _build(interpreter: str) -> str:
    return interpreter.partition(", collector ")[0]


def _code(stored: TrialResult, other: TrialResult, by_commit: bool) -> Iterator[str]:
    old, new = (each.code_commit.removesuffix("+dirty") for each in (stored, other))
    hashes = stored.code_sha256, other.code_sha256
    is_other_code = all(hashes) and hashes[0] != hashes[1]
    is_other_commit = bool(old and new) and old != new
    if is_other_commit and (by_commit or is_other_code or not all(hashes)):
        yield _changed("code: commit", old[:10], new[:10])
    elif is_other_code:
        yield _changed("code: SHA-256 of the sources", hashes[0][:10], hashes[1][:10])


def _changed(name: str, old: str, new: str) -> str:
    return f"{name} ({old or 'none'}, now {new or 'none'})"
