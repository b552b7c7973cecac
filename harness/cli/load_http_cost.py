"""``gcbench load --http-cost``: what the API layer costs, in process against over HTTP."""

from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn

from harness.axes import AXES, Value
from harness.cli.axis_option import parse_axes
from harness.cli.exit_codes import ExitCode
from harness.cli.options import TRIAL_SECONDS
from harness.cli.progress import ProgressBar, said_once
from harness.cli.say import say
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.run import INTERRUPTED
from harness.experiment.store import write_json
from harness.load.both_ways import HttpResult
from harness.load.http_cost import http_cost
from harness.load.served import SERVER_DECIDES
from harness.machine.interrupts import held_interrupts
from harness.result.result import RESULT_FILE

_DEFAULTS: dict[str, list[Value]] = {
    "representation": ["list_of_lists"],
    "delivery": ["per_request"],
    "detokenizer": ["decode_stream"],
    "device_profile": ["llama-3-8b-h200"],
    "batch_size": [32],
}
_IN_PROCESS_ONLY: dict[str, list[Value]] = {
    axis: [AXES[axis].default] for axis in SERVER_DECIDES if axis != "workload"
} | {"output_processing": ["process"]}
"""As the server has it: its front end makes the outputs, in a process of its own."""


class _Progress(ProgressBar):
    """Which cell was measured both ways last."""

    def advance(self, label: str) -> None:
        """One more was."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, description=f"both ways: {label[:48]}")


def load_http_cost(flags: dict[str, Any]) -> ExitCode:
    """Replay one schedule in process and over HTTP on the same engine, and say what HTTP adds."""
    rounds, quiet = flags.pop("rounds"), flags["quiet"]
    named = parse_axes(flags.pop("axis"), [*_IN_PROCESS_ONLY, "workload"])
    axes = {axis: [each.default] for axis, each in AXES.items()} | _DEFAULTS | named
    axes |= _IN_PROCESS_ONLY | {"workload": [flags.pop("workload")]}
    session = Session(flags | axes | {"trial_timeout": TRIAL_SECONDS})
    session.look_around()
    cells, runner = session.grid.cells, session.runner
    name = runner.new_name("http")
    with _Progress("both ways", rounds * len(cells), quiet, MofNCompleteColumn()) as bar:
        cost = http_cost(
            runner, cells, rounds, waits=said_once(Console(stderr=True)), on_measured=bar.advance
        )
    with held_interrupts():
        result = HttpResult(
            **session.about(name),
            rounds=rounds,
            cells=cost.cells,
            notes=[
                *session.notes,
                *cost.notes,
                *[INTERRUPTED] * cost.is_interrupted,
                *runner.lease.notes,
            ],
            is_complete=not cost.is_interrupted,
        )
        path = runner.output / name / RESULT_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, result)
        tell(result, **session.told)
    if cost.is_interrupted:
        return ExitCode.INTERRUPTED
    if cost.missing:
        say(f"no round of {', '.join(cost.missing)} could be used; the notes say why")
        return ExitCode.NOT_MEASURED
    return ExitCode.MEASURED
