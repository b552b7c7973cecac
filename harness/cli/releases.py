"""``gcbench releases``: an engine's host path, release by release, with no GPU."""

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
from harness.cli.session import Session
from harness.cli.tell import refuse_files, tell
from harness.cli.vllm_versions import prepare_releases, wanted_releases
from harness.experiment.plan import Plan, counting_modes
from harness.report.again import report_command
from harness.report.release_label import release_label
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
    refuse_files(image=image_path, markdown=markdown_path)
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
    failures: dict[str, str],
    markdown_path: str | None,
    image_path: str | None,
) -> None:
    """Count and time the cells, and say what each release's collector does."""
    ran = session.run(plan)
    result, interrupted = session.summarise(ran), ran.is_interrupted
    labels = {cell.release: release_label(cell.release) for cell in plan.cells}
    result = msgspec.structs.replace(result, release_labels=labels, missing_releases=failures)
    ran.store.save_experiment(result)
    tell(
        result,
        more=report_command(session.runner.output, result.name),
        details=True,
        image=image_path,
        markdown=markdown_path,
        **session.told,
    )
    if interrupted:
        Console(stderr=True, highlight=False).print(
            f"interrupted, incomplete; the trials are in {ran.store.folder}; the same command and "
            f"--resume {plan.name} go on"
        )
        ctx.exit(ExitCode.INTERRUPTED)
    if not any(cell.samples for cell in result.cells):
        ctx.exit(ExitCode.NOT_MEASURED)
