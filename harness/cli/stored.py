"""A stored run by its name: an experiment, a load, a gate, a night or a noise floor."""

from pathlib import Path

from engines.nearest import nearest
from harness.experiment.experiment_file import SCHEMA as PARTS_SCHEMA
from harness.experiment.experiment_file import PartsResult
from harness.experiment.noise_result import NOISE_SCHEMA, NoiseResult
from harness.experiment.result import SCHEMA as EXPERIMENT_SCHEMA
from harness.experiment.result import ExperimentResult
from harness.files import StoreError, decode_versioned, schema_of
from harness.load.result import SCHEMA as LOAD_SCHEMA
from harness.load.result import LoadResult
from harness.tracking.gate.result import GATE_SCHEMA, GateResult
from harness.tracking.nightly.result import NIGHTLY_SCHEMA, NightlyResult

Stored = ExperimentResult | PartsResult | LoadResult | GateResult | NightlyResult | NoiseResult

LATEST = "latest"

_TYPES: dict[str, type[Stored]] = {
    EXPERIMENT_SCHEMA: ExperimentResult,
    PARTS_SCHEMA: PartsResult,
    LOAD_SCHEMA: LoadResult,
    GATE_SCHEMA: GateResult,
    NIGHTLY_SCHEMA: NightlyResult,
    NOISE_SCHEMA: NoiseResult,
}
_FILES = ("gate.json", "parts.json", "experiment.json", "night.json")
"""What holds the result in a run's folder, the widest first: a gate's has experiments' too."""


def find_run(name: str, runs: Path) -> Path:
    """The file of a run: its path, the path of its folder, its name in ``runs``, or ``latest``.

    Raises ValueError where there is none.
    """
    if name == LATEST:
        if not (found := stored_runs(runs)):
            raise ValueError(f"{runs} holds no finished run; gcbench compare makes one")
        return found[0]
    for path in (Path(name), runs / name):
        if path.is_file():
            return path
        if path.is_dir() and (file := _result_of(path)):
            return file
    if (runs / name).is_dir() or Path(name).is_dir():
        raise ValueError(
            f"{name} holds no result: either `gcbench run` made it, which keeps none (--json "
            "writes one), or it was ended before its first summary and goes on by its command "
            f"with --resume {Path(name).name}"
        )
    known = [path.parent.name for path in stored_runs(runs)]
    near = f"did you mean {', '.join(nearest(name, known)[:3])}?" if known else f"{runs} has none"
    raise ValueError(f"there is no run {name!r}; {near}")


def stored_runs(runs: Path) -> list[Path]:
    """The result files of all runs in a folder, the newest first."""
    if not runs.is_dir():
        return []
    found = [file for folder in runs.iterdir() if (file := _result_of(folder))]
    return sorted(found, key=lambda file: file.stat().st_mtime, reverse=True)


def load_run(path: Path) -> Stored:
    """What a run's file holds. Raises StoreError where it is none that this gcbench reads."""
    schema = schema_of(path)
    if schema not in _TYPES:
        readable = ", ".join(_TYPES)
        raise StoreError(f"{path} has schema {schema!r}, and gcbench report reads {readable}")
    return decode_versioned(path, _TYPES[schema], schema)


def _result_of(folder: Path) -> Path | None:
    return next((folder / name for name in _FILES if (folder / name).is_file()), None)
