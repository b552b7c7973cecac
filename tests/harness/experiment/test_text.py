"""Cells that make text must make the same text, or they are not compared."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from small import CELL, TRIAL_SECONDS, plan, schedule, summary, trial

from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.result import ExperimentResult
from harness.experiment.store import TrialKey, trial_key
from harness.trial.run import run_trial
from harness.trial.spec import TrialResult

ROOT = Path(__file__).parents[3]
DECODE = schedule([30] * 20 + [1])
PLAIN = CELL
STREAM = msgspec.structs.replace(PLAIN, detokenizer="decode_stream")
TABLE = msgspec.structs.replace(PLAIN, detokenizer="byte_table")
COLUMNS = msgspec.structs.replace(TABLE, representation="flat_arrays", delivery="columnar")
OVERLAPPED = msgspec.structs.replace(COLUMNS, output_processing="overlapped")


def run(folder: Path, *cells: Cell) -> dict[Cell, TrialResult]:
    """In this interpreter, but for those of another tree."""
    found = {}
    for cell in cells:
        asked = trial(DECODE, folder, cell)
        if cell.release:
            (outcome,) = LocalExecutor(TRIAL_SECONDS).run([asked])
            assert isinstance(outcome, TrialResult), outcome.reason
            found[cell] = outcome
        else:
            found[cell] = run_trial(asked, lambda word: None)
    return found


def compared(results: dict[Cell, TrialResult]) -> ExperimentResult:
    """As if each of three rounds had given these."""
    outcomes: dict[TrialKey, Any] = {}
    for number in (1, 2, 3):
        for place, (cell, result) in enumerate(results.items()):
            outcomes[trial_key(number, place, cell, "timing")] = result
    return summary(plan(list(results), rounds=3), outcomes)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[Cell, TrialResult]:
    """Of this tree, and of one whose byte table was given a bug."""
    folder = tmp_path_factory.mktemp("text")
    shutil.copytree(ROOT / "engines", folder / "tree" / "engines")
    table = folder / "tree" / "engines" / "builtin" / "text" / "token_pieces.py"
    source = table.read_text()
    assert "return token_bytes(token)\n" in source
    table.write_text(source.replace("token_bytes(token)\n", "token_bytes(token).lower()\n"))
    planted = msgspec.structs.replace(COLUMNS, release=str(folder / "tree"))
    return run(folder, PLAIN, STREAM, TABLE, COLUMNS, OVERLAPPED, planted)


@pytest.mark.slow
def test_every_detokenizer_and_delivery_makes_one_text(results: dict[Cell, TrialResult]) -> None:
    texts = {results[cell].text_sha256 for cell in (STREAM, TABLE, COLUMNS, OVERLAPPED)}
    assert len(texts) == 1
    assert texts != {""}
    assert results[PLAIN].text_sha256 == ""


@pytest.mark.slow
def test_text_is_compared_where_there_is_any(results: dict[Cell, TrialResult]) -> None:
    """A first cell without a detokenizer has nothing to hold the others against."""
    result = compared({cell: results[cell] for cell in (PLAIN, STREAM, TABLE, COLUMNS)})
    assert not result.not_compared
    assert len(result.comparisons) == 3


@pytest.mark.slow
@pytest.mark.parametrize("before", [(), (PLAIN,)])
def test_a_bug_in_a_detokenizer_is_other_work(
    results: dict[Cell, TrialResult], before: tuple[Cell, ...]
) -> None:
    planted = next(cell for cell in results if cell.release)
    result = compared({cell: results[cell] for cell in (*before, STREAM, planted)})
    assert len(result.comparisons) == len(before)
    assert not any(str(planted.release) in each.candidate for each in result.comparisons)
    (note,) = result.not_compared
    assert "produced other text than" in note


@pytest.mark.slow
def test_another_tokenizer_makes_another_text(results: dict[Cell, TrialResult]) -> None:
    """Its cells are held against each other alone."""
    planted = next(cell for cell in results if cell.release)
    other = msgspec.structs.replace(planted, tokenizer="other.json")
    result = compared({STREAM: results[STREAM], other: _as(results[planted], other)})
    assert not result.not_compared


def _as(result: TrialResult, cell: Cell) -> TrialResult:
    return msgspec.structs.replace(result, cell=cell)
