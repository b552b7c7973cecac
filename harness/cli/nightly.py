"""``gcbench nightly``: measure what is new, say what has changed, and write the page of it."""

import sys
from collections import Counter
from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.nightly_run import Night, NightProgress
from harness.cli.options import image_option
from harness.cli.say import say
from harness.cli.status import nightly_status
from harness.cli.tell import refuse_files, tell
from harness.report.self_test import self_test_table
from harness.report.terminal import make_console, print_table
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.tracking.detect.search import PER_NIGHT
from harness.tracking.detect.self_test import self_test as test_detector
from harness.tracking.nightly.lock import BusyError
from harness.tracking.nightly.run_asv import refuse_without_asv

EXAMPLES = """
\b
Examples:
  gcbench nightly
      measure new commits; then open results/nightly/site/index.html
  gcbench nightly --commits HEAD~20..HEAD
      begin a history: the last twenty commits, less those already measured
  gcbench nightly ~/src/toy/asv.conf.json --output ~/nights
      any project that asv measures
  gcbench nightly --self-test
      what the detector finds, and how often it is wrong
"""


@click.command(epilog=EXAMPLES)
@click.argument(
    "config", type=click.Path(path_type=Path, dir_okay=False), default=Path("asv.conf.json")
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/nightly"),
    show_default=True,
    metavar="DIR",
    help="The page, the summary and what is being measured.",
)
@click.option(
    "--commits",
    default="",
    metavar="RANGE",
    help="These commits, in git's notation.  [default: those since the newest measured one]",
)
@click.option("--bench", default="", metavar="REGEX", help="These benchmarks only, as asv's.")
@click.option(
    "--machine",
    default="",
    metavar="NAME",
    help="What this machine is called in the results.  [default: its host name]",
)
@click.option(
    "--triage",
    "triage_path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What is known of changes (docs/history.md).  [default: triage.toml beside CONFIG]",
)
@click.option(
    "--reruns",
    default=PER_NIGHT,
    show_default=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="Pairs of commits that are measured again at most: is it a change, and whose.",
)
@click.option(
    "--rounds",
    default=5,
    show_default=True,
    type=click.IntRange(min=FEWEST_PAIRS),
    metavar="N",
    help="Turns that each of two such commits gets.",
)
@click.option(
    "--results",
    "shown",
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="What the dashboard shows.  [default: CONFIG's results_dir]",
)
@click.option("--self-test", is_flag=True, help="Measure nothing; try the detector by simulation.")
@click.option("--details", is_flag=True, help="Show every changed series and all that is known.")
@click.option("--markdown", "markdown_path", metavar="FILE", help="The summary for a page or chat.")
@image_option
@click.option("--json", "json_path", metavar="FILE|-", help="The summary for programs.")
@click.option("--quiet", is_flag=True, help="No progress and no tables.")
@click.pass_context
def nightly(
    ctx: click.Context,
    /,
    *,
    config: Path,
    output: Path,
    triage_path: Path | None,
    self_test: bool,
    details: bool,
    markdown_path: str | None,
    image_path: str | None,
    json_path: str | None,
    **flags: object,
) -> None:
    """Measure the commits that CONFIG, an asv.conf.json, has no results of; say what changed.

    Each commit is kept whole once it is measured, so a run that was ended goes on where it was.
    Exit status: 0 no regression; 1 a regression that nobody has acknowledged; 2 wrong usage;
    3 where something could not be measured or not be told, or another run is at work;
    130 interrupted, whatever was found.
    """
    refuse_without_asv()
    refuse_files(json=json_path, image=image_path, markdown=markdown_path)
    night = Night(config, output, triage_path, **flags)  # type: ignore[arg-type]
    quiet = bool(flags["quiet"])
    if self_test:
        ctx.exit(_self_test(night, quiet))
    try:
        result = night.run()
    except BusyError as busy:
        say(str(busy))
        ctx.exit(ExitCode.NOT_MEASURED)
    status = nightly_status(result)
    tell(
        result,
        status=status,
        details=details,
        quiet=quiet,
        json=json_path,
        image=image_path,
        markdown=markdown_path,
    )
    ctx.exit(status)


def _self_test(night: Night, quiet: bool) -> int:
    """Try the detector on each timing of the history, by simulation."""
    series = [
        each.series for each in night.look().verdicts.values() if each.series.kind == "timing"
    ]
    rows = []
    with NightProgress("testing", len(series), quiet) as bar:
        for each in series:
            rows += test_detector([each])
            bar.advance(each.name)
    tested = [row for row in rows if row.found]
    if tested:
        print_table(self_test_table(tested), make_console())
    left = Counter(row.why for row in rows if not row.found)
    for why, number in left.items():
        print(f"not tested: {number} series with {why}", file=sys.stderr)
    if not tested:
        say(f"{night.place.results} has no timing to test")
    return ExitCode.MEASURED if tested else ExitCode.NOT_MEASURED
