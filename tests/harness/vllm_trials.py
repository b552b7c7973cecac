"""Trials with real vLLM, as small as a test can do with, and what they are held against."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import small

from engines.builtin.engine import Engine
from engines.protocol import SamplingParams
from harness.axes import Cell
from harness.experiment.local_executor import LocalExecutor
from harness.trial.engine_config import engine_config
from harness.trial.spec import Mode, Trial, TrialResult
from workloads.schedule import Schedule

TIMEOUT_SECONDS = 600


def schedule(output_lens: Sequence[int], prompt_lens: Sequence[int], **changes: Any) -> Schedule:
    """Requests that are all there from the start."""
    fields: dict[str, Any] = {"name": "ragged", "prompt_lens": np.array(prompt_lens)}
    return small.schedule(output_lens, **(fields | changes))


def cell(engine: str, **axes: Any) -> Cell:
    """A cell of a batch of 12 on the null device."""
    fields: dict[str, Any] = {
        "workload": "ragged",
        "engine": engine,
        "model": "opt-125m",
        "device": "null",
        "representation": "list_of_lists" if engine == "builtin" else "native",
        "batch_size": 12,
    }
    return Cell(**(fields | axes))


def trial(of: Schedule, folder: Path, asked: Cell, mode: Mode = "counts", **fields: Any) -> Trial:
    """A trial of a schedule that is saved in a folder."""
    path = folder / f"{of.sha256[:12]}.npz"
    of.save(path)
    return Trial(
        cell=asked, schedule_path=str(path), schedule_sha256=of.sha256, mode=mode, **fields
    )


def run(trials: Sequence[Trial]) -> list[TrialResult]:
    """Their results, two interpreters at a time. Fails with the reason where there is none."""
    results = []
    for at in range(0, len(trials), 2):
        for outcome in LocalExecutor(TIMEOUT_SECONDS).run(trials[at : at + 2]):
            assert isinstance(outcome, TrialResult), outcome.reason
            assert outcome.invalid == ""
            results.append(outcome)
    return results


def outputs(of: Schedule) -> list[tuple[list[int], int]]:
    """Each request's tokens and finish reason, from the built-in engine in this process."""
    engine = Engine(engine_config(cell("builtin"), of))
    for index in range(of.num_requests):
        params = SamplingParams(int(of.output_lens[index]), stop_token_ids=of.stop_token_ids)
        engine.add_request(index, of.prompt_token_ids(index), params)
    reasons: dict[int, int] = {}
    while engine.has_unfinished_requests():
        for each in engine.step().delivered:
            reasons.update(zip(each.finished.tolist(), each.finish_reasons.tolist(), strict=True))
    return [(engine.output_token_ids(i).tolist(), reasons[i]) for i in range(of.num_requests)]
