"""What ``--dry-run`` says: what would be measured, as the file that asks for it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from harness.axes import Value
from harness.cli.settings import settings_toml
from harness.cli.stored import stored_runs
from harness.experiment.grid import varying
from harness.experiment.plan import exact_turns
from harness.experiment.result import ExperimentResult, cell_id
from harness.files import StoreError
from harness.render.terminal import make_console, print_pairs
from harness.report.kinds import read_result
from harness.verbs.compare import PlannedComparison
from harness.verbs.request import VerbRequest

ASSUMED_SECONDS = 3.0
"""Of a trial of which no like one is stored: a fresh interpreter and the main job."""
_MOST_CELLS = 12
_MOST_RUNS = 50
_COMMENT = "# "


def print_dry_run(
    pairs: Sequence[tuple[str, str]],
    request: VerbRequest,
    usual: Mapping[str, list[Value]] | None = None,
) -> None:
    """Print the file of a request, and above it as comments what it comes to."""
    console = make_console()
    console.width -= len(_COMMENT)
    with console.capture() as captured:
        print_pairs(pairs, console)
    for line in captured.get().splitlines():
        click.echo(f"{_COMMENT}{line.rstrip()}")
    click.echo(f"\n{settings_toml(request, usual)}", nl=False)


def plan_pairs(of: PlannedComparison) -> list[tuple[str, str]]:
    """A plan, as (label, words)."""
    session, plan, precise = of
    axes = varying(plan.cells)
    timed = plan.rounds * sum(map(len, plan.timed))
    counting = len(exact_turns(plan))
    names = [cell_id(cell, axes) for cell in plan.cells]
    more = len(names) - _MOST_CELLS
    cells = names[:_MOST_CELLS] + [f"and {more} more"] * (more > 0)
    workloads = {each.hash for each in session.runner.workloads}
    seconds, why = _seconds_per_trial(session.runner.output, workloads)
    total = (timed + counting) * seconds
    until = (
        f"; --until-precise adds rounds, up to {precise.budget_seconds:,.0f} s in all"
        if precise.half_width
        else ""
    )
    return [
        ("cells", f"{len(names)}, varying in {', '.join(axes) or 'nothing'}"),
        *(("", name) for name in cells),
        (
            "trials",
            f"{timed + counting}: {timed} timed in {plan.rounds} rounds, {counting} that count",
        ),
        ("decides", ", ".join(dict.fromkeys(plan.decide))),
        ("time", f"about {_minutes(total)}{until} ({seconds:.1f} s per trial, {why})"),
        *(("left out", why) for why in session.grid.left_out),
        *(("note", note) for note in session.notes),
    ]


def _seconds_per_trial(runs: Path, workloads: set[str]) -> tuple[float, str]:
    """Seconds of a trial, from the newest like run that is stored, and where that is from."""
    for path in stored_runs(runs)[:_MOST_RUNS]:
        try:
            found = read_result(path)
        except StoreError:
            continue
        if not isinstance(found, ExperimentResult) or found.surroundings is None:
            continue
        trials = sum(cell.samples for cell in found.cells)
        if trials and {each.hash for each in found.workloads} == workloads:
            return found.surroundings.during.seconds / trials, f"as in {found.name}"
    return ASSUMED_SECONDS, "assumed: no run of this workload is stored here"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
