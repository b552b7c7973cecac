"""``gcbench merge``: the shards of one experiment put together."""

from pathlib import Path

import click
import msgspec

from engines.nearest import nearest
from harness.cli.exit_codes import ExitCode
from harness.cli.options import output_option
from harness.cli.session import checked, command_line
from harness.cli.tell import tell
from harness.experiment.merge import merge_runs as put_together
from harness.experiment.run import replayed
from harness.experiment.store import RunStore, new_name
from harness.experiment.summarise import summarise
from harness.files import StoreError
from harness.machine.describe import Machine
from harness.report.again import report_command
from harness.trial.spec import TrialResult

EXAMPLES = """
\b
Examples:
  gcbench merge 2026-11-24T0900-decode 2026-11-24T0905-decode
      what `compare --shard 1/2` and `--shard 2/2` have left on two machines
"""


@click.command(epilog=EXAMPLES)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--details", is_flag=True, help="Show all tables, conclusions and notes.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the result there.")
@output_option("Where runs are kept, and where the new one goes.")
@click.pass_context
def merge(
    ctx: click.Context, runs: tuple[str, ...], details: bool, json_path: str | None, output: Path
) -> None:
    """Make one experiment of the shards that `gcbench compare --shard` has measured.

    A RUN is a name below results/runs or the path of such a folder. Nothing is measured: their
    trials are copied. Shards of another plan, code, interpreter or machine, or with a block in
    common, are refused. Exit status 3 where trials are missing.
    """
    checked(json_path, "--json")
    folders = [_folder(name, output) for name in runs]
    if len(set(folders)) < len(folders):
        raise ValueError("a run is given twice; give each shard once")
    name = new_name(output, f"{folders[0].name.split('-', 3)[-1]}-merged")
    store = RunStore(output, name)
    try:
        merged = put_together(folders, store)
    except (ValueError, StoreError):
        if not any(store.folder.iterdir()):
            store.folder.rmdir()  # nothing of it is there yet
        raise
    notes = list(merged.notes)
    if merged.missing:
        notes.append(f"{merged.missing} trials are missing: not all shards were given, or whole.")
    results = (each for each in merged.outcomes.values() if isinstance(each, TrialResult))
    machine = next((each.machine for each in results if each.machine), Machine())
    result = summarise(
        merged.plan,
        merged.outcomes,
        machine=machine,
        workloads=replayed(merged.schedules),
        command=command_line(),
        notes=notes,
    )
    result = msgspec.structs.replace(result, surroundings=merged.surroundings)
    store.save_experiment(result)
    more = report_command(output, result.name)
    tell(result, more=more, details=details, json=json_path)
    ctx.exit(ExitCode.NOT_MEASURED if merged.missing else ExitCode.MEASURED)


def _folder(name: str, output: Path) -> Path:
    """The folder of a run. Raises ValueError where there is none."""
    for path in (Path(name), output / name):
        if (path / "plan.json").is_file():
            return path.resolve()
    known = [path.parent.name for path in output.glob("*/plan.json")]
    near = f"did you mean {', '.join(nearest(name, known)[:3])}?" if known else ""
    raise ValueError(f"there is no run {name!r} in {output}; {near}".rstrip("; "))
