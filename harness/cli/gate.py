"""``gcbench gate``: what a change costs, commit against commit, and whose doing it is."""

import shlex
from collections.abc import Sequence
from functools import partial
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from engines.protocol import EngineClass
from engines.registry import ENGINES
from harness.cli.options import axis_options, run_options, workload_options
from harness.cli.session import Session, checked, command_line
from harness.collector.policy import parse_policy
from harness.experiment import cell_id
from harness.grid import varying
from harness.machine import describe
from harness.outcomes import Trials
from harness.report.gate import (
    again_lines,
    findings,
    gate_failure_lines,
    gate_header,
    gate_markdown,
    gate_tables,
    headline,
)
from harness.report.terminal import make_console, print_lines, print_pairs, print_table
from harness.rounds import Precision
from harness.store import new_name, write_json
from harness.store_files import write_whole
from harness.tracking.export import write_github_action_benchmark
from harness.tracking.gate import judge, overall
from harness.tracking.gate_plan import Pair, exact_plan, pair, timing_plan
from harness.tracking.gate_result import GateResult
from harness.tracking.gate_timing import Timings, compare_timings
from harness.tracking.gate_words import conclude_gate
from harness.tracking.trees import WORK_TREE, Tree, differences, find_commit, take_tree

EXAMPLES = """
\b
Examples:
  gcbench gate main
      the work tree as it stands, uncommitted changes included, against main
  gcbench gate HEAD~1 HEAD --exact-only
      exact counts alone: seconds, on any machine
  gcbench gate main HEAD --markdown gate.md --github-action-benchmark gate
      in CI, for the pull request and for github-action-benchmark
  gcbench gate v0.11.2 v0.12.0 --repo ~/vllm --engine vllm-hostpath
      two commits of a vLLM checkout, with no GPU (make vllm first)
"""


@click.command(epilog=EXAMPLES)
@click.argument("base")
@click.argument("head", default=WORK_TREE)
@click.option(
    "--repo",
    default=Path(),
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The checkout with both commits; the current folder else.",
)
@axis_options(
    without=("release", "python"),
    workload=["opt125m-48-500"],
    device=["null"],
    representation=[],
    delivery=[],
)
@workload_options
@click.option("--exact-only", is_flag=True, help="Count, and time nothing.")
@click.option("--rounds", default=7, show_default=True, help="Timed rounds at least.")
@click.option(
    "--until-precise",
    default=1.0,
    show_default=True,
    metavar="PCT",
    help="Go on until each interval is within ± PCT.",
)
@click.option(
    "--budget",
    default=150.0,
    show_default=True,
    metavar="SECONDS",
    help="For that, after the rounds.",
)
@click.option(
    "--tolerance",
    default=3.0,
    show_default=True,
    metavar="PCT",
    help="An interval of times within it reads `same`.",
)
@click.option("--markdown", "markdown_path", metavar="FILE", help="Report for a pull request.")
@click.option(
    "--github-action-benchmark",
    "benchmark_path",
    metavar="FILE",
    help="Figures of HEAD for that action: FILE.smaller.json and FILE.bigger.json.",
)
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
    rounds: int,
    until_precise: float,
    budget: float,
    tolerance: float,
    markdown_path: str | None,
    benchmark_path: str | None,
    **flags: Any,
) -> None:
    """Measure commit HEAD against BASE: exact counts first, then host time until it is precise.

    Only the engine's own package is taken from the commits; one harness measures both. Without
    HEAD it is the work tree as it stands. Exit status: 0 same, better or not to be told; 1 worse;
    2 wrong usage; 3 where something could not be measured.
    """
    _refuse_numbers(rounds, until_precise, budget, tolerance)
    _refuse_file(markdown_path, "--markdown")
    _refuse_file(benchmark_path, "--github-action-benchmark")
    output, seed = flags["output"], flags["seed"]
    engine = _engine(flags["engine"])
    not_meant = _take_shapes(flags, engine)
    session = Session(flags | {"release": [""], "python": [""]}, is_prepared=False)
    cells = [
        cell for cell in session.grid.cells if (cell.representation, cell.delivery) not in not_meant
    ]
    if not_meant:
        session.grid = session.grid._replace(left_out=[])  # nobody has asked for them
    if any("disabled" in parse_policy(cell.gc) for cell in cells):
        raise ValueError("--gc disabled: the gate measures it beside every cell; leave it out")
    for commit in (base, head):
        find_commit(repo, commit, engine.package)  # refused before a folder is made
    name = new_name(output, "gate")
    code = (output / name / "code").resolve()
    trees = [
        take_tree(repo, base, engine.package, code / "base"),
        take_tree(repo, head, engine.package, code / "head"),
    ]
    for tree in trees:
        _refuse_tree(tree, engine)
    notes = differences(repo, trees[0], trees[1], engine.package)
    axes = varying(cells)
    pairs = [
        pair(cell_id(cell, axes), cell, trees[0].folder, trees[1].folder, number)
        for number, cell in enumerate(cells)
    ]

    counting = exact_plan(name, pairs, session.schedule_hashes, seed)
    counted = session.measure(counting, lambda _: Timings([], {}), Precision(0.0, 0.0))
    measured = [counted]
    trials = Trials(counting, counted.outcomes)
    timed, timings = None, Timings([], {})
    if not (exact_only or counted.is_interrupted):
        timing = timing_plan(name, pairs, session.schedule_hashes, seed, rounds=rounds,
                             tolerance=tolerance / 100)  # fmt: skip
        compare = partial(compare_timings, pairs, timing)
        measured.append(session.measure(timing, compare, Precision(until_precise / 100, budget)))
        timed, timings = Trials(timing, measured[1].outcomes), compare(measured[1].outcomes)
    judged = judge(pairs, trials, timed, timings.by_pair, partial(_again, axes))
    if is_interrupted := measured[-1].is_interrupted:
        judged.missing.append("Interrupted before everything was measured.")
    result = GateResult(
        name=name,
        base=trees[0],
        head=trees[1],
        machine=describe(),
        workload=session.workload_words(),
        tolerance=tolerance / 100,
        verdict=overall(judged.cells),
        cells=judged.cells,
        missing=judged.missing,
        failures=[*trials.failures, *(timed.failures if timed else [])],
        conclusions=conclude_gate(judged.cells),
        notes=list(dict.fromkeys([*notes, *judged.notes, *(n for m in measured for n in m.notes)])),
        command=command_line(),
    )
    write_json(output / name / "gate.json", result)
    if session.shows_tables:
        _show(result)
    session.write_json(result)
    if markdown_path:
        write_whole(
            Path(markdown_path).resolve(), gate_markdown(result).encode(), "--markdown FILE"
        )
    if benchmark_path:
        write_github_action_benchmark(Path(benchmark_path), result)
    if is_interrupted:
        Console(stderr=True).print("interrupted; the above is of the trials that had ended")
        ctx.exit(130)
    if result.verdict == "worse":
        ctx.exit(1)
    if result.missing or not result.cells:
        ctx.exit(3)


def _refuse_numbers(rounds: int, until_precise: float, budget: float, tolerance: float) -> None:
    if rounds < 1:
        raise ValueError(f"--rounds {rounds}: must be at least 1; --exact-only times nothing")
    for option, percent in (("--until-precise", until_precise), ("--tolerance", tolerance)):
        if not 0 < percent < 100:
            raise ValueError(f"{option} {percent:g}: must be a percentage above 0 and below 100")
    if not 0 <= budget < inf:
        raise ValueError(f"--budget {budget:g}: must be seconds, 0 or more")


def _refuse_file(path: str | None, option: str) -> None:
    if path and (path == "-" or (Path(path).exists() and not Path(path).is_file())):
        raise ValueError(f"{option} {path}: must be a file; --json - prints to standard output")
    checked(path, option)


def _refuse_tree(tree: Tree, engine: EngineClass) -> None:
    try:
        engine.launch("", tree.folder)
    except ValueError as error:
        why = str(error).removeprefix(f"--release {tree.folder}: ")
        raise ValueError(f"{tree.label} cannot be measured: {why}") from None


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


def _again(axes: Sequence[str], each: Pair) -> str:
    """The command of this run, narrowed to one cell."""
    cell = each.base
    flags = [part for axis in axes
             for part in (f"--{axis.replace('_', '-')}", str(getattr(cell, axis)))]  # fmt: skip
    return " ".join([command_line(), shlex.join(flags)]).strip()


def _show(result: GateResult) -> None:
    console = make_console()
    print_pairs(gate_header(result), console)
    for table in gate_tables(result):
        print_table(table, console)
    print_lines("Trials without a result", gate_failure_lines(result), console, style="red")
    print_lines("Notes", result.notes, console)
    print_lines(headline(result), findings(result), console, style="bold")
    print_lines("To see it again", again_lines(result), console)
