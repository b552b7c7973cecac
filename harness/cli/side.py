"""One side of `gcbench report --against`: stored runs that are compared with others."""

from collections.abc import Sequence
from pathlib import Path

from harness.experiment.load_rounds import one_side
from harness.experiment.result import ExperimentResult
from harness.load.result import LoadResult
from harness.report.kinds import read_result


def side(files: Sequence[Path]) -> ExperimentResult:
    """An experiment, or loads as the rounds of one.

    Raises ValueError for what is neither, StoreError for what cannot be read.
    """
    results = [read_result(file) for file in files]
    loads = [each for each in results if isinstance(each, LoadResult)]
    if len(loads) == len(results):
        found = [_of_load(load, file) for load, file in zip(loads, files, strict=True)]
        return one_side(found, [file.parent for file in files])
    for file, result in zip(files, results, strict=True):
        if len(files) > 1 and not isinstance(result, LoadResult):
            raise ValueError(
                f"{file} is no load: only loads are joined, for an experiment has rounds of its own"
            )
    (result,) = results
    if not isinstance(result, ExperimentResult):
        raise ValueError(
            f"{files[0]} is no experiment; --against compares what compare or load has stored"
        )
    return result


def _of_load(result: LoadResult, file: Path) -> ExperimentResult:
    if result.experiment is None or not (file.parent / "rows").is_dir():
        raise ValueError(f"{file} has no requests beside it; give the name of the load's folder")
    return result.experiment
