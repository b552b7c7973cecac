"""The workloads that have a name, and reading one from a file of one's own."""

import difflib
from pathlib import Path

import msgspec

from workloads.recipe.spec import read_toml
from workloads.traces.trace import Trace
from workloads.workload import Workload

_FOLDER = Path(__file__).with_suffix("")


def workload_names() -> list[str]:
    """The catalogue's workloads, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def load_workload(name_or_path: str) -> Workload:
    """A workload of the catalogue, of a ``.toml`` file, or a trace (``.csv``, ``.jsonl``) as it is.

    Raises ValueError with one sentence that names the file and the place in it.
    """
    match Path(name_or_path).suffix.lower():
        case ".toml":
            return _read_toml(Path(name_or_path))
        case ".csv" | ".jsonl":
            return _as_recorded(Path(name_or_path))
    if name_or_path not in workload_names():
        near = difflib.get_close_matches(name_or_path, workload_names(), n=3, cutoff=0.5)
        nearest = f" (did you mean {', '.join(near)}?)" if near else ""
        raise ValueError(
            f"there is no workload {name_or_path!r}{nearest}; `gcbench list workloads` lists them, "
            "and a file of your own ends in .toml, .csv or .jsonl"
        )
    return _read_toml(_FOLDER / f"{name_or_path}.toml")


def _read_toml(path: Path) -> Workload:
    """A file's workload, named after the file unless it names itself."""
    workload = read_toml(path, Workload, "workload")
    if workload.trace is None:
        return workload
    beside = str(path.parent / workload.trace.path)
    return msgspec.structs.replace(
        workload, trace=msgspec.structs.replace(workload.trace, path=beside)
    )


def _as_recorded(path: Path) -> Workload:
    return Workload(
        name=path.stem,
        reason=f"The requests of the trace {path.name}, as they were recorded.",
        model="llama-3-8b",
        trace=Trace(str(path)),
    )
