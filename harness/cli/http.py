"""``gcbench http``: what the API layer costs, by one schedule in process and over HTTP."""

from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn

from engines.openai.target import parse_target
from harness.axes import AXES, Cell, values
from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, wait_quiet_option, workload_options
from harness.cli.progress import ProgressBar, said_once
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.served_engine import SERVER_DECIDES
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.grid import traits, varying
from harness.experiment.result import cell_id
from harness.experiment.run import INTERRUPTED_NOTE
from harness.experiment.store import write_json
from harness.load.both_ways import HttpResult, Round, both_ways
from harness.load.measure import Wanted, measure
from harness.load.run import observe
from harness.load.served import flags_of, served
from harness.load.task import Asked
from harness.machine.interrupts import held_interrupts
from harness.machine.scratch import scratch_folder
from harness.not_measured import NotMeasured
from harness.result.result import RESULT_FILE
from harness.trial.engine_config import engine_config
from harness.trial.spec import Trial, TrialFailure

EXAMPLES = """
\b
Examples:
  gcbench http
      what HTTP adds to the built-in engine on a modelled H200
  gcbench http --representation list_of_lists,flat_arrays
      the same for two shapes of sampled tokens
  gcbench http --workload chat --num-requests 500
      for requests that arrive by themselves
"""


class _Progress(ProgressBar):
    """Which cell was measured both ways last."""

    def advance(self, label: str) -> None:
        """One more was."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, description=f"both ways: {label[:48]}")


_IN_PROCESS_ONLY = {axis: AXES[axis].default for axis in SERVER_DECIDES if axis != "workload"} | {
    "output_processing": "process"
}
"""As the server has it: its front end makes the outputs, in a process of its own."""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@axis_options(
    without=tuple(_IN_PROCESS_ONLY),
    representation=["list_of_lists"],
    delivery=["per_request"],
    detokenizer=["decode_stream"],
    device_profile=["llama-3-8b-h200"],
    batch_size=[32],
)
@workload_options
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=7,
    show_default=True,
    help="Times that each cell is measured both ways.",
)
@wait_quiet_option
@run_options
@click.pass_context
def http(ctx: click.Context, /, *, rounds: int, **flags: Any) -> None:
    """Replay one schedule in process and over HTTP on the same engine, and say what HTTP adds.

    Starts `gcbench serve` for each cell and asks it as `gcbench load` does. A round in which the
    client was the bottleneck is left out, and the reason is given.
    """
    quiet = flags["quiet"]
    session = Session(flags | {axis: [value] for axis, value in _IN_PROCESS_ONLY.items()})
    session.look_around()
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("http")
    measured: dict[Cell, list[Round]] = {cell: [] for cell in cells}
    notes = list(session.notes)
    is_interrupted = False
    labels = {cell: cell_id(cell, varying(cells)) for cell in cells}
    with _Progress("both ways", rounds * len(cells), quiet, MofNCompleteColumn()) as bar:
        try:
            for number in range(rounds):
                order = np.random.default_rng([runner.seed, number]).permutation(len(cells))
                for cell in (cells[i] for i in order):
                    found = _round(session, cell)
                    why = found.reason if isinstance(found, NotMeasured) else found.refusal
                    if why:
                        notes.append(f"Round {number + 1} of {labels[cell]} is left out: {why}.")
                    elif isinstance(found, Round):
                        measured[cell].append(found)
                    bar.advance(labels[cell])
        except KeyboardInterrupt:
            is_interrupted = True
    with held_interrupts():
        result = HttpResult(
            **session.about(name),
            rounds=rounds,
            cells=[
                both_ways(labels[cell], values(cell), found)
                for cell, found in measured.items()
                if found
            ],
            notes=[*notes, *[INTERRUPTED_NOTE] * is_interrupted, *runner.lease.notes],
            is_complete=not is_interrupted,
        )
        path = runner.output / name / RESULT_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, result)
        tell(result, **session.told)
    if is_interrupted:
        ctx.exit(ExitCode.INTERRUPTED)
    if missing := [labels[cell] for cell, found in measured.items() if not found]:
        say(f"no round of {', '.join(missing)} could be used; the notes say why")
        ctx.exit(ExitCode.NOT_MEASURED)


def _round(session: Session, cell: Cell) -> Round | NotMeasured:
    """A cell measured both ways, or why one of them gave nothing.

    Raises EngineDeadError where its server does not become ready.
    """
    runner = session.runner
    schedule = runner.schedules[cell.workload]
    config = engine_config(cell, schedule)
    flags = flags_of(cell, SERVER_DECIDES)
    # Else the server takes requests as long as the model does, and has blocks for fewer of them.
    flags += ["--max-model-len", str(config.max_model_len), "--seed", str(schedule.token_seed)]
    with scratch_folder() as folder, runner.lease.hold(said_once(Console(stderr=True))):
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
            asked = Asked(url=server.url, model=server.model, vocab_size=config.vocab_size)
            before = server.cpu_seconds()
            observed = observe(schedule, asked, parse_target(server.url), folder)
            if why := server.ended():
                return NotMeasured(why)
            after = server.cpu_seconds()
    if observed.is_interrupted:
        raise KeyboardInterrupt
    return Round(
        in_process=in_process,
        over_http=measure(observed, cell.workload, runner.seed, Wanted()),
        cpu_seconds={role: after[role] - before[role] for role in before},
        num_tokens=max(1, int(observed.responses.num_tokens.sum())),
    )
