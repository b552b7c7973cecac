"""``gcbench gate``: what a change costs, commit against commit, and whose doing it is."""

import shlex
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from engines.protocol import EngineClass, TreeError
from engines.registry import ENGINES
from harness.axes import AXES, Cell
from harness.cli.exit_codes import ExitCode
from harness.cli.gate_run import GateRun
from harness.cli.options import (
    PERCENT,
    SECONDS_OR_0,
    axis_options,
    image_option,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked, command_line
from harness.cli.status import gate_status
from harness.cli.tell import refuse_files, tell
from harness.collector.policy import parse_policy
from harness.experiment.grid import traits, varying
from harness.experiment.result import cell_id
from harness.experiment.store import write_json
from harness.report.again import report_command
from harness.result.result import RESULT_FILE
from harness.tracking.gate.ancestry import others_changes
from harness.tracking.gate.changed_functions import changed_functions
from harness.tracking.gate.exact_counts import overall
from harness.tracking.gate.export import write_github_action_benchmark
from harness.tracking.gate.kept_counts import KeptCounts
from harness.tracking.gate.not_run import not_run
from harness.tracking.gate.plan import GatePair, pair
from harness.tracking.gate.result import GateResult
from harness.tracking.gate.trees import WORK_TREE, Tree, find_commit, take_tree, tree_differences
from harness.tracking.gate.words import conclude_gate

EXAMPLES = """
\b
Examples:
  gcbench gate main
      the work tree as it stands, uncommitted changes included, against main
  gcbench gate HEAD~1 HEAD --exact-only
      exact counts alone: takes seconds, on any machine
  gcbench gate HEAD^1 HEAD --markdown gate.md --github-action-benchmark gate
      in CI, where HEAD is the pull request merged into its branch
  gcbench gate v0.11.2 v0.12.0 --repo ~/vllm --engine vllm-hostpath
      two commits of a vLLM checkout, with no GPU (make vllm first)
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.argument("base")
@click.argument("head", default=WORK_TREE)
@click.option(
    "--repo",
    default=Path(),
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The checkout with both commits.  [default: the current folder]",
)
@axis_options(
    without=("release", "python"),
    workload=["opt125m-48-500"],
    device=["null"],
    gc=["freeze"],
    representation=[],
    delivery=[],
)
@workload_options
@click.option("--exact-only", is_flag=True, help="Count only, which takes seconds; time nothing.")
@click.option(
    "--count-anew",
    is_flag=True,
    help="Count again what an earlier gate has counted of the same files.",
)
@click.option("--rounds", default=7, show_default=True, help="Timed rounds, at least.")
@click.option(
    "--until-precise",
    type=PERCENT,
    default=1.0,
    show_default=True,
    metavar="PCT",
    help="Add rounds until each interval is within ± PCT.",
)
@click.option(
    "--budget",
    type=SECONDS_OR_0,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for timed rounds; --rounds are run whatever they take.",
)
@click.option(
    "--tolerance",
    type=PERCENT,
    default=3.0,
    show_default=True,
    metavar="PCT",
    help="An interval of times within ± PCT is called `same`.",
)
@click.option("--details", is_flag=True, help="Show all findings, figures and notes.")
@image_option
@click.option("--markdown", "markdown_path", metavar="FILE", help="Report for a pull request.")
@click.option(
    "--github-action-benchmark",
    "benchmark_path",
    metavar="FILE",
    help="HEAD's figures for that action: FILE.smaller.json, FILE.bigger.json.",
)
@wait_quiet_option
@run_options
@click.pass_context
def gate(
    ctx: click.Context,
    /,
    *,
    base: str,
    head: str,
    repo: Path,
    exact_only: bool,
    count_anew: bool,
    rounds: int,
    until_precise: float,
    budget: float,
    tolerance: float,
    details: bool,
    image_path: str | None,
    markdown_path: str | None,
    benchmark_path: str | None,
    **flags: Any,
) -> None:
    """Measure commit HEAD against BASE: exact counts first, then host time until it is precise.

    Only the engine's own package is taken from the commits; one harness measures both. Without
    HEAD it is the work tree as it stands. Exit status: 0 same, better or not to be told; 1 worse;
    2 wrong usage; 3 where something could not be measured or a commit cannot run.
    """
    if rounds < 1:
        raise ValueError(f"--rounds {rounds}: must be at least 1; --exact-only times nothing")
    _refuse_file(markdown_path, "--markdown")
    _refuse_file(benchmark_path, "--github-action-benchmark")
    refuse_files(image=image_path)
    output = flags["output"]
    engine = _engine(flags["engine"])
    kept = KeptCounts.of_user(engine.package)
    how = GateRun(
        exact_only,
        rounds,
        until_precise / 100,
        budget,
        tolerance / 100,
        flags["seed"],
        kept,
        count_anew,
    )
    not_meant = _take_shapes(flags, engine)
    session = Session(flags | {"release": [""], "python": [""]}, is_prepared=False)
    cells = _cells(session, not_meant)
    if exact_only and not all(traits(cell).is_exact for cell in cells):
        raise ValueError(
            "--exact-only: counts need not repeat here, because there is a clock, a thread or a "
            "second process; use --device null and leave --output-processing, --worker and "
            "--engine-core out, or leave --exact-only out"
        )
    for commit in (base, head):
        find_commit(repo, commit, engine.package)  # refused before a folder is made
    session.look_around()
    name = session.runner.new_name("gate")
    code = (output / name / "code").resolve()
    trees = [
        take_tree(repo, base, engine.package, code / "base"),
        take_tree(repo, head, engine.package, code / "head"),
    ]
    for tree in trees:
        _refuse_tree(tree, engine)
    axes = varying(cells)
    pairs = [
        pair(cell_id(cell, axes), cell, trees[0].folder, trees[1].folder, number)
        for number, cell in enumerate(cells)
    ]
    touched = changed_functions(Path(trees[0].folder), Path(trees[1].folder), engine.package)
    notes = tree_differences(
        repo, trees[0], trees[1], engine.package
    )  # now: a work tree may move on
    if not_heads := others_changes(repo, trees[0], trees[1], engine.package):
        notes.insert(0, not_heads)
        if not flags["quiet"]:
            say(not_heads)
    found = how.measure(session, name, trees, pairs, partial(_command, axes))
    result = GateResult(
        **session.about(name),
        base=trees[0],
        head=trees[1],
        tolerance=how.tolerance,
        verdict=overall(found.judged.cells, found.judged.missing),
        cells=found.judged.cells,
        missing=found.judged.missing,
        failures=found.failures,
        conclusions=conclude_gate(found.judged.cells),
        notes=[*notes, *found.judged.notes],
        not_run=not_run(touched, found.ran),
        timed_seconds=found.timed_seconds,
    )
    write_json(output / name / RESULT_FILE, result)
    status = ExitCode.INTERRUPTED if found.is_interrupted else gate_status(result)
    if benchmark_path and not result.missing:
        write_github_action_benchmark(Path(benchmark_path), result)
    tell(
        result,
        more=report_command(output, name),
        status=status,
        details=details,
        image=image_path,
        markdown=markdown_path,
        **session.told,
    )
    _say_what_is_missing(result, benchmark_path, found.is_interrupted)
    ctx.exit(status)


def _say_what_is_missing(
    result: GateResult, benchmark_path: str | None, is_interrupted: bool
) -> None:
    stderr = Console(stderr=True, highlight=False, soft_wrap=True)
    if benchmark_path and result.missing:
        words = "not written, for not everything was measured"
        stderr.print(f"gcbench: --github-action-benchmark {benchmark_path}: {words}", markup=False)
    if is_interrupted:
        stderr.print("interrupted; what is said is of the trials that had ended")
    elif not result.cells:
        for why in result.missing:
            stderr.print(f"gcbench: nothing could be measured: {why}", markup=False)


def _cells(session: Session, not_meant: set[tuple[str, str]]) -> list[Cell]:
    cells = [
        cell for cell in session.grid.cells if (cell.representation, cell.delivery) not in not_meant
    ]
    if not_meant:
        session.grid = session.grid._replace(left_out=[])  # nobody has asked for them
    if any("disabled" in parse_policy(cell.gc) for cell in cells):
        raise ValueError("--gc disabled: the gate measures it where times change; leave it out")
    return cells


def _refuse_file(path: str | None, option: str) -> None:
    if path and (path == "-" or (Path(path).exists() and not Path(path).is_file())):
        raise ValueError(f"{option} {path}: must be a file; --json - prints to standard output")
    checked(path, option)


def _refuse_tree(tree: Tree, engine: EngineClass) -> None:
    try:
        engine.launch("", tree.folder)
    except TreeError as error:
        raise ValueError(f"{tree.label} cannot be measured: {error.why}") from None
    except ValueError as error:
        raise ValueError(f"{tree.label} cannot be measured: {error}") from None


def _engine(names: list[str]) -> EngineClass:
    if len(names) > 1:
        raise ValueError(
            f"--engine {','.join(names)}: the gate takes one, whose package the commits hold"
        )
    engine: EngineClass = ENGINES.load(names[0])
    return engine


def _take_shapes(flags: dict[str, Any], engine: EngineClass) -> set[tuple[str, str]]:
    """Set the axes to the shapes asked for, or to the engine's own; pairs that are not meant."""
    asked = flags["representation"], flags["delivery"]
    if any(asked):
        flags["representation"] = asked[0] or [engine.shapes[0][0]]
        flags["delivery"] = asked[1] or ["per_request"]
        return set()
    flags["representation"] = list(dict.fromkeys(shape for shape, _ in engine.shapes))
    flags["delivery"] = list(dict.fromkeys(delivery for _, delivery in engine.shapes))
    return set(product(flags["representation"], flags["delivery"])) - set(engine.shapes)


def _command(axes: Sequence[str], each: GatePair) -> str:
    """The command of this run, narrowed to one cell."""
    cell = each.base
    flags = [part for axis in axes for part in (AXES[axis].flag, str(getattr(cell, axis)))]
    return " ".join([command_line(), shlex.join(flags)]).strip()
