"""``gcbench bisect``: the commit with which an exact metric moved."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from click.core import ParameterSource
from rich.console import Console

from engines.protocol import EngineClass
from engines.registry import ENGINES
from engines.vllm.versions import is_version
from harness.axes import values
from harness.cli.bisect_run import Commits, Counter, Releases, Source
from harness.cli.exit_codes import ExitCode
from harness.cli.options import axis_options, run_options, workload_options
from harness.cli.say import say
from harness.cli.sections import SectionCommand
from harness.cli.session import Session
from harness.cli.tell import tell
from harness.experiment.grid import traits
from harness.experiment.store import write_json
from harness.explain.largest_changes import LargestChange
from harness.machine.interrupts import held_interrupts
from harness.metrics import Metric
from harness.report.bisect import bisect_headline
from harness.report.safe_text import safe_text
from harness.result.result import RESULT_FILE
from harness.tracking.bisect.bisection import Bisection
from harness.tracking.bisect.counting import check_cell, find_metric
from harness.tracking.bisect.result import BisectResult

EXAMPLES = """
\b
Examples:
  gcbench bisect v0.1.0 --metric bytecodes_per_request_step
      the commit since this tag that changed how many bytecodes a step takes
  gcbench bisect HEAD~200 --metric leaked_objects_per_step --num-requests 64
      which of 200 commits leaves objects behind: about 10 trials of seconds
  gcbench bisect A B --engine vllm-hostpath --repo ~/vllm \\
          --metric bytecodes_per_request_step
      two commits of a vLLM checkout, with no GPU (make vllm first)
  gcbench bisect 0.11.0 0.20.0 --engine vllm-hostpath \\
          --metric gc_collections_gen0
      releases of vLLM; only those that are measured are downloaded
"""

_WIDTH = 80
_OWN = frozenset({"good", "bad", "metric_name", "json_path", "output", "quiet", "trial_timeout"})
"""What the commands to run next say themselves, or do without."""
_NOT_OF_RELEASES = frozenset({"engine", "heap_objects", "wire", "delivery"})


@click.command(cls=SectionCommand, epilog=EXAMPLES)
@click.argument("good")
@click.argument("bad", default="HEAD")
@click.option("--metric", "metric_name", required=True, metavar="NAME", help="An exact metric.")
@click.option(
    "--repo",
    default=None,
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
@run_options
@click.pass_context
def bisect(
    ctx: click.Context, /, *, good: str, bad: str, metric_name: str, repo: Path | None, **flags: Any
) -> None:
    """Find the commit after GOOD, up to BAD, with which an exact metric moved.

    It counts about log2(N) + 2 of N commits, one trial each, and times nothing, so any machine
    will do. Only the engine's own package is taken from the commits; those that do not change it
    are not measured. BAD is HEAD if left out. With --engine vllm-hostpath and without --repo both
    may be releases of vLLM. Exit status: 0 found; 2 wrong usage; 3 nothing to find, or commits
    that had to be measured cannot be.
    """
    metric = find_metric(metric_name)
    engine = _engine(flags["engine"])
    flags["representation"] = flags["representation"] or [engine.shapes[0][0]]
    flags["delivery"] = flags["delivery"] or ["per_request"]
    output, quiet = flags["output"], flags["quiet"]
    no_more = {"release": [""], "python": [""], "anyway": False}
    session = Session(flags | no_more, is_prepared=False)
    check_cell(session.cell, metric)
    source = _source(engine, repo, good, bad)
    name = session.runner.new_name("bisect")
    stderr = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
    counter = Counter(
        session, name, metric, source, say=lambda words: stderr.print(safe_text(words))
    )
    bisection = Bisection(source.candidates, metric, source.tree_of, counter.count)
    functions: list[LargestChange] = []
    try:
        bisection.run()
        if bisection.conclusion in ("found", "several") and traits(session.cell).is_exact:
            ends = bisection.search.good, bisection.search.bad
            functions = counter.functions(*(bisection.candidates[end] for end in ends))
    except KeyboardInterrupt:
        say("interrupted; what is said is of the trials that had ended")
    with held_interrupts():
        result = _result(ctx, session, name, metric, source, bisection)
        result = msgspec.structs.replace(
            result, functions=functions, notes=[*result.notes, *counter.notes]
        )
        write_json(output / name / RESULT_FILE, result)
        tell(result, details=True, **session.told)
    if not session.shows_tables and result.conclusion not in ("found", "interrupted"):
        say(bisect_headline(result))
    ctx.exit(_status(result))


def _status(result: BisectResult) -> ExitCode:
    if result.conclusion == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.MEASURED if result.conclusion == "found" else ExitCode.NOT_MEASURED


def _engine(names: list[str]) -> EngineClass:
    if len(names) > 1:
        raise ValueError(f"--engine {','.join(names)}: bisect takes one, whose commits it measures")
    engine: EngineClass = ENGINES.load(names[0])
    return engine


def _source(engine: EngineClass, repo: Path | None, good: str, bad: str) -> Source:
    if repo is None and engine.package == "vllm" and is_version(good) and is_version(bad):
        return Releases.between(good, bad)
    return Commits.between(repo or Path(), good, bad, engine.package)


def _result(
    ctx: click.Context, session: Session, name: str, metric: Metric, source: Source, of: Bisection
) -> BisectResult:
    """What there is to say, however far the bisection has come."""
    ends = good, bad = of.search.good, of.search.bad
    has_suspects = {*ends} <= of.figures.keys() and of.conclusion not in ("same", "unmeasured")
    is_told = of.conclusion in ("found", "several")
    labels = [of.candidates[end].label for end in ends]
    before, after = (of.figures[end].value if has_suspects else None for end in ends)
    left = (
        ((0, good), (ctx.params["good"], labels[0])),
        ((bad, len(of.candidates) - 1), (labels[1], ctx.params["bad"])),
    )
    return BisectResult(
        **session.about(name),
        candidate_kind=source.kind,
        package=ENGINES.load(session.cell.engine).package,
        metric=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        good=ctx.params["good"],
        bad=ctx.params["bad"],
        conclusion=of.conclusion,
        num_commits=source.num_commits,
        num_candidates=len(of.candidates) - 1,
        suspects=[of.candidates[each] for each in of.search.suspects] if has_suspects else [],
        before=before,
        after=after,
        functions=[],
        measured=of.measured,
        explain=_explain(ctx, source.kind, labels) if is_told else "",
        rest=[
            shlex.join(["gcbench", "bisect", *between, "--metric", metric.name, *_given(ctx, _OWN)])
            for positions, between in left
            if is_told and of.differ(*positions)
        ],
        axes={axis: value for axis, value in values(session.cell).items() if axis != "release"},
        notes=session.notes,
    )


def _explain(ctx: click.Context, kind: str, labels: Sequence[str]) -> str:
    """The command that says what else changed between two candidates."""
    if kind == "release":
        given = _given(ctx, _OWN | _NOT_OF_RELEASES)
        return shlex.join(["gcbench", "releases", "vllm", *labels, *given])
    return shlex.join(["gcbench", "gate", *labels, *_given(ctx, _OWN), "--exact-only"])


def _given(ctx: click.Context, without: Collection[str]) -> list[str]:
    """The flags of the command line, as another command takes them."""
    words: list[str] = []
    for option in ctx.command.params:
        name = option.name or ""
        if name in without or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value, flag = ctx.params[name], option.opts[0]
        if isinstance(value, bool):
            words.append(flag)
        elif isinstance(value, tuple):  # may be given several times
            words += [word for each in value for word in (flag, str(each))]
        else:
            values_ = value if isinstance(value, list) else [value]
            words += [flag, ",".join(map(str, values_))]
    return words
