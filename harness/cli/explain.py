"""``gcbench explain``: what a step costs function by function, and what another version does."""

from pathlib import Path
from typing import Any, NamedTuple, get_args

import click
from msgspec.structs import replace
from rich.console import Console

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.vllm.releases import prepare
from harness.axes import Cell, values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, workload_options
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked, command_line
from harness.experiment.grid import is_exact
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.store import write_json
from harness.explain.changes import function_changes
from harness.explain.exports.collapsed import collapsed_stacks
from harness.explain.exports.sarif import sarif_log
from harness.explain.exports.speedscope import speedscope_file
from harness.explain.exports.stacks import Count
from harness.explain.line_changes import line_changes
from harness.explain.ranking import By
from harness.explain.result import ExplainResult, Side
from harness.explain.sides import BY_FUNCTION, read_side
from harness.files import write_output
from harness.machine.describe import describe
from harness.report.explain import explain_answer, explain_header, explain_tables
from harness.report.release_label import release_label
from harness.report.terminal import make_console, print_lines, print_pairs, print_table
from harness.tracking.gate.trees import WORK_TREE, find_commit, take_tree

_COUNTS: dict[By, Count] = {"bytecodes": "bytecodes", "objects": "allocations"}

EXAMPLES = """
\b
Examples:
  gcbench explain
      which functions and lines a decode step spends its bytecodes on
  gcbench explain --against main
      what the work tree as it stands does differently from main
  gcbench explain --engine vllm-hostpath --release 0.33.0 --against 0.13.0
      what made vLLM's host path dearer, with no GPU
  gcbench explain --workload churn --every 25
      over a whole run in which requests come and go
  gcbench explain --engine vllm-hostpath --repo ~/vllm --against v0.33.0
      a vLLM checkout against one of its commits
"""


class _Version(NamedTuple):
    """``cell`` runs it; below ``root`` lie its files."""

    label: str
    cell: Cell
    root: str


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.option(
    "--against",
    default="",
    metavar="VERSION",
    help="A release of vLLM, or with --repo and for the built-in engine a commit.",
)
@click.option(
    "--repo",
    default="",
    metavar="PATH",
    help="The checkout with both commits; for the built-in engine, the current folder by default.",
)
@click.option(
    "--commit",
    default="",
    metavar="COMMIT",
    help="Of the checkout, instead of the work tree as it stands.",
)
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    default="bytecodes",
    show_default=True,
    help="What functions and lines are ranked by.",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 10**6),
    default=10,
    show_default=True,
    help="Functions and lines that are shown.",
)
@click.option(
    "--every",
    type=click.IntRange(0, 10**6),
    default=0,
    metavar="N",
    help="Trace one step in N of the whole run instead of eight at full batch.",
)
@click.option(
    "--speedscope", "speedscope_path", metavar="FILE", help="Flame graphs for speedscope.app."
)
@click.option("--collapsed", "collapsed_path", metavar="FILE", help="Stacks for flamegraph.pl.")
@click.option(
    "--sarif", "sarif_path", metavar="FILE", help="The dearer functions, for code review."
)
@axis_options(without=("python",), workload=["opt125m-48-300"], device=["null"], gc=["as_is"])
@workload_options
@run_options
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    *,
    against: str,
    repo: str,
    commit: str,
    by: By,
    rows: int,
    every: int,
    speedscope_path: str | None,
    collapsed_path: str | None,
    sarif_path: str | None,
    **flags: Any,
) -> None:
    """Count the bytecodes and tracked objects of a step, function by function and line by line.

    The counts are exact and add up to the metrics that `gcbench gate` judges. With --against they
    stand beside another version's: which functions are dearer, new, gone, renamed or moved.
    Measures no times.
    """
    for option, path in (
        ("--speedscope", speedscope_path),
        ("--collapsed", collapsed_path),
        ("--sarif", sarif_path),
    ):
        checked(path, option)
    engine: EngineClass = ENGINES.load(flags["engine"][0])
    session = Session(flags | {"python": [""], "anyway": True}, is_prepared=False)
    cell, output = session.cell, session.runner.output
    if repo or commit or (against and engine.package == "engines"):
        wanted = [commit or WORK_TREE, against] if against else [commit or WORK_TREE]
        for each in wanted:
            find_commit(Path(repo), each, engine.package)  # refused before a folder is made
        name = session.runner.new_name("explain")
        folder = (output / name / "code").resolve()
        versions = [
            _of_commit(Path(repo), each, engine.package, cell, folder / side)
            for each, side in zip(wanted, ("this", "against"), strict=False)
        ]
    else:
        releases = [cell.release, against] if against else [cell.release]
        versions = [_of_release(each, engine, cell, flags["quiet"]) for each in releases]
        name = session.runner.new_name("explain")
    cells = list(dict.fromkeys(version.cell for version in versions))
    runner = session.runner
    hashes = runner.schedule_hashes
    ran = session.run(counting_plan(name, cells, [BY_FUNCTION], hashes, runner.seed, every))
    trials = Trials(ran.plan, ran.outcomes)
    sides = [read_side(trials, each.cell, each.label, each.root) for each in versions]
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    if ran.is_interrupted:
        stderr.print("interrupted before everything was counted")
        ctx.exit(ExitCode.INTERRUPTED)
    if why := next((side for side in sides if isinstance(side, str)), ""):
        stderr.print(f"gcbench: nothing to explain: {why}", markup=False)
        ctx.exit(ExitCode.NOT_MEASURED)
    result = _result(session, name, [side for side in sides if isinstance(side, Side)])
    write_json(output / name / "explain.json", result)
    if speedscope_path:
        write_output(speedscope_path, speedscope_file(result), "--speedscope FILE")
    if collapsed_path:
        stacks = collapsed_stacks(result.side.costs, _COUNTS[by])
        write_output(collapsed_path, stacks, "--collapsed FILE")
    if sarif_path:
        write_output(sarif_path, sarif_log(result), "--sarif FILE")
    session.write_json(result)
    if session.shows_tables:
        show(result, by, rows)


def show(result: ExplainResult, by: By, rows: int) -> None:
    """Print it: the answer first."""
    console = make_console()
    print_lines("", explain_answer(result, by), console, style="bold")
    for table in explain_tables(result, by, rows):
        print_table(table, console)
    print_lines("Notes", result.notes, console)
    console.print()
    print_pairs(explain_header(result), console)


def _of_commit(repo: Path, commit: str, package: str, cell: Cell, folder: Path) -> _Version:
    tree = take_tree(repo, commit, package, folder)
    return _Version(tree.label, replace(cell, release=tree.folder), tree.folder)


def _of_release(release: str, engine: EngineClass, cell: Cell, quiet: bool) -> _Version:
    """A release or a tree by its path; a release of vLLM is made ready where it is not."""
    cell, root = replace(cell, release=release), release
    label = release or "this code"
    if release and engine.package == "vllm":
        stderr = Console(stderr=True, highlight=False, quiet=quiet)
        with stderr.status("preparing", spinner="dots") as status:
            root = str(prepare(release, status.update))
        label = release_label(release)
    engine.launch("", release)  # refused now, if it is
    return _Version(label, cell, root)


def _result(session: Session, name: str, sides: list[Side]) -> ExplainResult:
    side, against = sides[0], sides[1] if len(sides) > 1 else None
    changes = function_changes(against.costs, side.costs) if against else []
    notes = list(session.notes)
    if not is_exact(session.cell):
        notes.append(
            "With threads, other processes or a clock these counts need not repeat to the digit, "
            "and work in other processes is not in them."
        )
    return ExplainResult(
        name=name,
        command=command_line(),
        machine=describe(),
        workload=session.runner.workloads[0],
        axes=worth_mentioning(values(session.cell)),
        side=side,
        against=against,
        changes=changes,
        lines=line_changes(changes, against, side) if against else [],
        notes=notes,
    )
