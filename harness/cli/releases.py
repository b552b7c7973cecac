"""``gcbench releases``: an engine's host path, release by release, with no GPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from engines.vllm.releases import PINNED, base_interpreter, known_versions, layer
from harness.cli.exit_codes import ExitCode
from harness.cli.options import (
    axis_options,
    cluster_options,
    run_options,
    wait_quiet_option,
    workload_options,
)
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked
from harness.cli.vllm_versions import prepare_releases, wanted_releases
from harness.experiment.plan import Plan, counting_modes
from harness.experiment.result import ExperimentResult
from harness.experiment.run import INTERRUPTED
from harness.files import write_output
from harness.report.header import header
from harness.report.image_file import image_suffix
from harness.report.markdown import table_markdown
from harness.report.messages import messages_tables
from harness.report.release_label import release_label
from harness.report.releases import costs_table, release_row, releases_table, roles_table
from harness.report.releases_image import releases_image
from harness.report.summary import failure_lines
from harness.report.table import PlainTable
from harness.report.terminal import make_console, print_lines, print_pairs, print_table
from harness.trial.spec import Mode

_COUNTING: tuple[Mode, ...] = ("counts", "tracked", "opcodes", "wire")

EXAMPLES = f"""
\b
Examples:
  gcbench releases vllm --prepare
      make the environment for vLLM {PINNED} that --engine vllm then uses
  gcbench releases vllm 0.11.0 0.11.2 0.12.0 {PINNED}
      each release's collections, pauses and host time, exactly and timed
  gcbench releases vllm 0.11.0 0.11.1 all --last-patches --gc as_is,default
      the last patch of each minor version since 0.10.0, and two more
  gcbench releases vllm 0.11.2..0.13.0 --image releases.png
      each release in this range, and a chart of their young collections
  gcbench explain --engine vllm-hostpath --release 0.13.0.. --last-patches
      which function made a step dearer, and with which release it came
  gcbench releases vllm 0.11.2 0.12.0 --worker process
      what crosses to a worker process, before and after vLLM #29121
  gcbench releases vllm --vllm-path ~/vllm --engine-core process
      a working tree, with its engine core in a process of its own
  gcbench releases vllm --list
      the releases there are
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.argument("engine", type=click.Choice(["vllm"]))
@click.argument("versions", nargs=-1)
@click.option(
    "--vllm-path",
    "paths",
    multiple=True,
    metavar="PATH",
    help="A vLLM source tree as one more release; may be given several times.",
)
@click.option(
    "--last-patches", is_flag=True, help="Of a range only the last release of each minor version."
)
@click.option(
    "--prepare",
    "prepare_only",
    is_flag=True,
    help="Make the environments only, and say where they are.",
)
@click.option("--list", "list_only", is_flag=True, help="List the releases there are.")
@click.option(
    "--resume",
    default="",
    metavar="NAME",
    help="Go on with an interrupted run, or with more --rounds.",
)
@click.option("--rounds", default=1, show_default=True, help="Timed trials per cell.")
@click.option(
    "--repeats",
    default=2,
    show_default=True,
    help="Trials that count under the first policy; on null, in one process, they must agree.",
)
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write the tables there too.")
@click.option(
    "--image",
    "image_path",
    metavar="FILE",
    help="Draw the young collections by release there, .png or .svg.",
)
@axis_options(
    without=("engine", "release", "python", "heap_objects", "wire", "delivery"),
    workload=["opt125m-48-300"],
    device=["null"],
    gc=["as_is", "freeze", "default"],
    setup=["shipped", "lean"],
)
@workload_options
@cluster_options
@wait_quiet_option
@run_options
@click.pass_context
def releases(
    ctx: click.Context,
    /,
    *,
    engine: str,
    versions: tuple[str, ...],
    paths: tuple[str, ...],
    last_patches: bool,
    prepare_only: bool,
    list_only: bool,
    resume: str,
    rounds: int,
    repeats: int,
    markdown_path: str | None,
    image_path: str | None,
    **flags: Any,
) -> None:
    """Measure the host path of ENGINE's releases VERSIONS, each in an environment of its own.

    An environment is made once and kept: a release's Python files over one installation of
    torch and the newest dependencies. A release that cannot be had or imported is named and
    left out. VERSIONS are releases, ranges of them (0.10.2..0.12.0, both ends may be left out)
    or all; without any the pinned release is taken.
    """
    if list_only:
        click.echo("\n".join(known_versions()))
        return
    if image_path:
        image_suffix(Path(image_path))  # refused now, if it is
    checked(image_path, "--image")
    wanted = wanted_releases(versions, last_patches=last_patches)
    wanted = list(dict.fromkeys([*wanted, *paths])) or [PINNED]
    axes = {
        "engine": ["vllm-hostpath"],
        "release": wanted,
        "python": [""],
        "heap_objects": [0],
        "wire": ["pickle"],
        "delivery": ["per_request"],
    }
    session = Session(flags | axes, is_prepared=False)
    # refused now, if it is
    session.plan(session.grid.cells, rounds=rounds, repeats=repeats, resume=resume)
    prepared, failures = prepare_releases(wanted, quiet=flags["quiet"])
    if prepare_only:
        for release in prepared:
            click.echo(f"{release_label(release)}: {layer(release)}")
    if not prepared:
        ctx.exit(ExitCode.NOT_MEASURED)
    if prepare_only:
        click.echo(f"interpreter: {base_interpreter()}")
        return
    cells = [cell for cell in session.grid.cells if cell.release in prepared]
    modes = counting_modes(cells, _COUNTING)
    plan = session.plan(cells, rounds=rounds, counting=modes, repeats=repeats, resume=resume)
    _measure(ctx, session, plan, failures, markdown_path, image_path)


def _measure(
    ctx: click.Context,
    session: Session,
    plan: Plan,
    failures: Sequence[str],
    markdown_path: str | None,
    image_path: str | None,
) -> None:
    """Count and time the cells, and say what each release's collector does."""
    ran = session.run(plan)
    result, interrupted = session.summarise(ran), ran.is_interrupted
    left_out = [f"Left out: {failure}" for failure in failures]
    result = msgspec.structs.replace(result, notes=[*left_out, *result.notes])
    labels = {cell.release: release_label(cell.release) for cell in plan.cells}
    tables = [releases_table(result, labels), costs_table(result, labels)]
    tables += messages_tables(result, lambda cell: release_row(result, cell, labels))
    if (roles := roles_table(result, labels)) is not None:
        tables.append(roles)
    try:
        if markdown_path:
            parts = [INTERRUPTED] * interrupted + list(map(table_markdown, tables))
            write_output(markdown_path, "\n\n".join(parts).encode() + b"\n", "--markdown FILE")
        if image_path and any(cell.samples for cell in result.cells) and not interrupted:
            suffix = image_suffix(Path(image_path))
            write_output(image_path, releases_image(result, suffix, labels), "--image FILE")
        session.write_json(result)
    finally:
        if session.shows_tables:
            show(result, tables)
    if interrupted:
        unwritten = f"; {image_path} is not written" if image_path else ""
        Console(stderr=True, highlight=False).print(
            f"interrupted, incomplete; the trials are in {ran.store.folder}{unwritten}; the same "
            f"command and --resume {plan.name} go on"
        )
        ctx.exit(ExitCode.INTERRUPTED)
    if not any(cell.samples for cell in result.cells):
        ctx.exit(ExitCode.NOT_MEASURED)


def show(result: ExperimentResult, tables: list[PlainTable]) -> None:
    """Print it as tables on the terminal."""
    console = make_console()
    print_pairs([*header(result), ("command", result.command)], console)
    for table in tables:
        print_table(table, console)
    print_lines("Trials without a result", failure_lines(result), console, style="red")
    print_lines("Notes", result.notes, console)
