"""What HTTP adds, measured: every cell in process and over HTTP, round after round."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harness.axes import AXES, Cell, values
from harness.experiment.grid import traits, varying
from harness.experiment.result import cell_id
from harness.experiment.run import Runner
from harness.load.both_ways import CellBothWays, Round, both_ways
from harness.load.measure import Wanted, measure
from harness.load.run import observe
from harness.load.served import flags_of, served
from harness.load.task import Asked
from harness.machine.scratch import scratch_folder
from harness.not_measured import NotMeasured
from harness.trial.engine_config import engine_config
from harness.trial.spec import Trial, TrialFailure


class HttpCost(NamedTuple):
    """``notes``: why rounds are left out, a sentence each; ``missing``: cells with no other."""

    cells: list[CellBothWays]
    notes: list[str]
    missing: list[str]
    is_interrupted: bool


def measure_both_ways(
    runner: Runner,
    cells: Sequence[Cell],
    rounds: int,
    *,
    waits: Callable[[str], None],
    on_measured: Callable[[str], None],
) -> HttpCost:
    """Measure each cell both ways in each round, the cells in an order by the seed.

    ``waits`` is told for whom a measurement waits, ``on_measured`` which cell was measured. Ctrl-C
    leaves what has ended. Raises EngineDeadError where a server does not become ready.
    """
    measured: dict[Cell, list[Round]] = {cell: [] for cell in cells}
    labels = {cell: cell_id(cell, varying(cells)) for cell in cells}
    notes: list[str] = []
    is_interrupted = False
    try:
        for number in range(rounds):
            order = np.random.default_rng([runner.seed, number]).permutation(len(cells))
            for cell in (cells[i] for i in order):
                found = _round(runner, cell, waits)
                why = found.reason if isinstance(found, NotMeasured) else found.refusal
                if why:
                    notes.append(f"Round {number + 1} of {labels[cell]} is left out: {why}.")
                elif isinstance(found, Round):
                    measured[cell].append(found)
                on_measured(labels[cell])
    except KeyboardInterrupt:
        is_interrupted = True
    return HttpCost(
        [both_ways(labels[cell], values(cell), found) for cell, found in measured.items() if found],
        notes,
        [labels[cell] for cell, found in measured.items() if not found],
        is_interrupted,
    )


def _round(runner: Runner, cell: Cell, waits: Callable[[str], None]) -> Round | NotMeasured:
    """A cell measured both ways, or why one of them gave nothing."""
    schedule = runner.schedules[cell.workload]
    config = engine_config(cell, schedule)
    flags = flags_of(cell)
    # Else the server takes requests as long as the model does, and has blocks for fewer of them.
    flags += AXES["max_model_len"].words(config.max_model_len)
    flags += ["--seed", str(schedule.token_seed)]
    with scratch_folder() as folder, runner.lease.hold(waits):
        path = folder / "schedule.npz"
        schedule.save(path)
        trial = Trial(
            cell=cell,
            schedule_path=str(path),
            schedule_sha256=schedule.sha256,
            seed=runner.seed,
            is_exact=traits(cell).is_exact,
        )
        (in_process,) = runner.executor.run([trial])
        if isinstance(in_process, TrialFailure):
            return NotMeasured(in_process.reason)
        with served(flags, folder) as server:
            asked = Asked(urls=[server.url], model=server.model, vocab_size=config.vocab_size)
            before = server.cpu_seconds()
            observed = observe(schedule, asked, folder)
            if why := server.ended():
                return NotMeasured(why)
            after = server.cpu_seconds()
    if observed.is_interrupted:
        raise KeyboardInterrupt
    return Round(
        in_process=in_process,
        over_http=measure(observed, cell.workload, runner.seed, Wanted()),
        cpu_seconds={role: after[role] - before[role] for role in before},
        num_tokens=max(1, int(observed.responses.num_tokens[observed.responses.completed].sum())),
    )
