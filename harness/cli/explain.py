"""``gcbench explain``: what a step costs, line by line, and what makes the collector run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import click
from msgspec.structs import replace

from engines.protocol import EngineClass
from engines.registry import ENGINES
from harness.axes import values, worth_mentioning
from harness.cli.exit_codes import ExitCode
from harness.cli.explained_versions import commit_versions, release_versions
from harness.cli.options import axis_options, image_option, run_options, workload_options
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.session import Session, checked
from harness.cli.tell import refuse_files, tell
from harness.cli.vllm_versions import wanted_releases
from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.experiment.store import write_json
from harness.explain.bodies import (
    BY_SITE,
    ExplainedVersion,
    functions_body,
    growth_body,
    sites_body,
)
from harness.explain.exports.collapsed import collapsed_stacks
from harness.explain.exports.sarif import sarif_log
from harness.explain.exports.speedscope import speedscope_file
from harness.explain.exports.stacks import Count
from harness.explain.result import By, ExplainBody, ExplainResult, FunctionsBody, GrowthBody
from harness.explain.sides import BY_FUNCTION
from harness.files import write_output
from harness.machine.interrupts import held_interrupts
from harness.not_measured import NotMeasured
from harness.result.result import RESULT_FILE
from harness.tracking.gate.trees import WORK_TREE, find_commit

_By = Literal[By, "collections"]

_COUNTS: dict[By, Count] = {"bytecodes": "bytecodes", "objects": "allocations"}

_PROFILES = ("--speedscope", "--collapsed", "--sarif")

EXAMPLES = """
\b
Examples:
  gcbench explain
      which functions and lines a decode step spends its bytecodes on
  gcbench explain --by collections
      which lines make the collector run, and how often
  gcbench explain --against main
      what the work tree as it stands does differently from main
  gcbench explain --engine vllm-hostpath --release 0.33.0 --against 0.13.0
      what made vLLM's host path dearer, with no GPU
  gcbench explain --engine vllm-hostpath --release 0.13.0.. --last-patches
      which function made a step dearer, and with which release it came
  gcbench explain --workload churn --every 25
      over a whole run in which requests come and go
  gcbench explain --engine vllm-hostpath --repo ~/vllm --against v0.33.0
      a vLLM checkout against one of its commits
"""


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.option(
    "--by",
    type=click.Choice(get_args(_By)),
    default="bytecodes",
    show_default=True,
    help="What functions and lines are ranked by: what they execute, the objects they make, or "
    "the collections for which their objects are the cause.",
)
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
    "--last-patches",
    is_flag=True,
    help="Of a range of vLLM's releases only the last of each minor version.",
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
@click.option("--markdown", "markdown_path", metavar="FILE", help="Write the tables there too.")
@image_option
@axis_options(without=("python",), workload=["opt125m-48-300"], device=["null"], gc=["as_is"])
@workload_options
@run_options
@click.pass_context
def explain(
    ctx: click.Context,
    /,
    *,
    by: _By,
    against: str,
    repo: str,
    commit: str,
    last_patches: bool,
    rows: int,
    every: int,
    speedscope_path: str | None,
    collapsed_path: str | None,
    sarif_path: str | None,
    markdown_path: str | None,
    image_path: str | None,
    **flags: Any,
) -> None:
    """Say which functions and lines a step's cost is made of, or which make the collector run.

    Counts bytecodes and tracked objects exactly: they add up to the metrics that `gcbench gate`
    judges. With --against they stand beside another version's; of several releases it says with
    which each function became dearer. --by collections looks at the young objects that each
    collection finds. Measures no times.
    """
    refuse_files(image=image_path, markdown=markdown_path)
    files = {
        "--speedscope": checked(speedscope_path, "--speedscope"),
        "--collapsed": checked(collapsed_path, "--collapsed"),
        "--sarif": checked(sarif_path, "--sarif"),
        "--image": image_path,
        "--markdown": markdown_path,
    }
    engine: EngineClass = ENGINES.load(flags["engine"][0])
    if engine.package == "vllm" or last_patches:
        flags["release"] = wanted_releases(flags["release"], last_patches=last_patches)
    asked = _Asked(by, len(flags["release"]) > 1, against, repo, commit, every)
    _refuse_idle(asked, files)
    quiet = flags["quiet"]
    session = Session(flags | {"python": [""], "anyway": True}, is_prepared=False)
    found = _find_versions(ctx, session, engine, asked, quiet=quiet)
    ran = session.run(
        counting_plan(
            found.run,
            list(dict.fromkeys(version.cell for version in found.versions)),
            [BY_SITE if by == "collections" else BY_FUNCTION],
            session.runner.schedule_hashes,
            session.runner.seed,
            every,
        )
    )
    body = _body(asked, engine, Trials(ran.plan, ran.outcomes), found)
    if isinstance(body, NotMeasured):
        if ran.is_interrupted:
            say("interrupted before everything was counted")
            ctx.exit(ExitCode.INTERRUPTED)
        say(f"nothing to explain: {body.reason}")
        ctx.exit(ExitCode.NOT_MEASURED)
    with held_interrupts():
        result = _result(session, found, body, rows, is_complete=not ran.is_interrupted)
        write_json(session.runner.output / found.run / RESULT_FILE, result)
        _write_profiles(result, files)
        tell(result, details=True, image=image_path, markdown=markdown_path, **session.told)
    if ran.is_interrupted:
        ctx.exit(ExitCode.INTERRUPTED)


class _Asked(NamedTuple):
    """The question; ``is_along``: of several releases, one after another."""

    by: _By
    is_along: bool
    against: str
    repo: str
    commit: str
    every: int


class _Found(NamedTuple):
    """The run in which ``versions`` are counted, and why others cannot be, a sentence each."""

    run: str
    versions: list[ExplainedVersion]
    left_out: list[str]


def _refuse_idle(asked: _Asked, files: Mapping[str, str | None]) -> None:
    """Raises ValueError for an option that the question has no use for."""
    of_versions = {"--against": asked.against, "--repo": asked.repo, "--commit": asked.commit}
    given: dict[str, object] = {**of_versions, "--every": asked.every, **files}
    idle: tuple[str, ...] = ("--image",)
    why = "draws several releases; name them, as in --release 0.32.0,0.33.0"
    if asked.by == "collections":
        if asked.is_along:
            raise ValueError("--release: --by collections looks at one version; name one")
        idle = ("--against", "--every", *_PROFILES, "--image")
        why = "has no meaning with --by collections, which looks at one version; leave it out"
    elif asked.is_along:
        idle = ("--against", "--repo", "--commit", *_PROFILES)
        why = "is for one version or two; leave it out, or name one --release"
    if option := next((each for each in idle if given[each]), ""):
        raise ValueError(f"{option}: {why}")


def _find_versions(
    ctx: click.Context, session: Session, engine: EngineClass, asked: _Asked, *, quiet: bool
) -> _Found:
    """Lay out the commits, or make the releases ready. Raises ValueError for what there is not."""
    cells, runner = session.grid.cells, session.runner
    if len({cell.release for cell in cells}) < len(cells):
        raise ValueError("explain takes one value an axis, but for --release; leave the others out")
    if asked.repo or asked.commit or (asked.against and engine.package == "engines"):
        repo, asked_for = Path(asked.repo), (asked.commit or WORK_TREE, asked.against)
        commits = list(filter(None, asked_for))
        for commit in commits:
            find_commit(repo, commit, engine.package)  # refused before a folder is made
        run = runner.new_name("explain")
        folder = (runner.output / run / "code").resolve()
        return _Found(run, commit_versions(repo, commits, engine.package, cells[0], folder), [])
    if asked.against:
        cells = [*cells, replace(cells[0], release=asked.against)]
    versions, left_out = release_versions(cells, engine, quiet=quiet)
    if not versions or (left_out and not asked.is_along):
        ctx.exit(ExitCode.NOT_MEASURED)
    return _Found(runner.new_name("explain"), versions, left_out)


def _body(
    asked: _Asked, engine: EngineClass, trials: Trials, found: _Found
) -> ExplainBody | NotMeasured:
    if asked.by == "collections":
        adapter = "/".join(engine.__module__.split(".")[:-1])  # hands vLLM's tokens to vLLM
        return sites_body(trials, found.versions[0], [engine.package, adapter])
    if asked.is_along:
        return growth_body(trials, found.versions, asked.by, found.left_out)
    return functions_body(trials, found.versions, asked.by)


def _result(
    session: Session, found: _Found, body: ExplainBody, rows: int, *, is_complete: bool
) -> ExplainResult:
    cell, notes = found.versions[0].cell, list(session.notes)
    if not traits(cell).is_exact:
        notes.append(
            "With threads, other processes or a clock these counts need not repeat to the digit, "
            "and work in other processes is not in them."
        )
    axes = worth_mentioning(values(session.grid.cells[0]))
    if isinstance(body, GrowthBody):
        axes.pop("release", None)  # there are several
    return ExplainResult(
        **session.about(found.run),
        axes=axes,
        body=body,
        rows=rows,
        notes=notes,
        is_complete=is_complete,
    )


def _write_profiles(result: ExplainResult, files: Mapping[str, str | None]) -> None:
    body = result.body
    if not isinstance(body, FunctionsBody):
        return
    writers: dict[str, Callable[[], bytes]] = {
        "--speedscope": lambda: speedscope_file(result.name, body),
        "--collapsed": lambda: collapsed_stacks(body.side.costs, _COUNTS[body.by]),
        "--sarif": lambda: sarif_log(body),
    }
    for option, write in writers.items():
        if path := files[option]:
            write_output(path, write(), f"{option} FILE")
