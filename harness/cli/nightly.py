"""``gcbench nightly``: measure what is new, say what has changed, and write the page of it."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from harness.cli.caller import CommandLine
from harness.cli.exit_codes import ExitCode
from harness.cli.flags import asked, option, request_options
from harness.cli.say import say
from harness.cli.settings import AskedCommand
from harness.cli.status import nightly_status
from harness.cli.tell import tell, telling, telling_options
from harness.render.terminal import make_console, print_table
from harness.report.self_test import self_test_table
from harness.tracking.detect.self_test import self_test as test_detector
from harness.tracking.nightly.lock import BusyError
from harness.tracking.nightly.result import NightlyResult
from harness.tracking.nightly.run_asv import refuse_without_asv
from harness.verbs.caller import Caller
from harness.verbs.night import Night, NightRequest

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


@click.command(cls=AskedCommand, epilog=EXAMPLES)
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False), required=False)
@request_options(NightRequest)
@option("--self-test", is_flag=True, help="Measure nothing; try the detector by simulation.")
@telling_options("details", "image", "json", "quiet", exported=NightlyResult)
@click.pass_context
def nightly(ctx: click.Context, /, *, self_test: bool, **_: Any) -> None:
    """Measure the commits that CONFIG, an asv.conf.json, has no results of; say what changed.

    Each commit is kept whole once it is measured, so a run that was ended goes on where it was.
    Exit status: 0 no regression; 1 a regression that nobody has acknowledged; 2 wrong usage;
    3 where something could not be measured or not be told, or another run is at work;
    130 interrupted, whatever was found.
    """
    refuse_without_asv()
    how = telling(ctx)
    with CommandLine(quiet=how.quiet) as caller:
        night = Night(asked(NightRequest, ctx), caller)
        if self_test:
            ctx.exit(_self_test(night, caller))
        try:
            result = night.run()
        except BusyError as busy:
            say(str(busy))
            ctx.exit(ExitCode.NOT_MEASURED)
    status = nightly_status(result)
    tell(result, how, status=status)
    ctx.exit(status)


def _self_test(night: Night, caller: Caller) -> int:
    """Try the detector on each timing of the history, by simulation."""
    series = [
        each.series for each in night.look_over().verdicts.values() if each.series.kind == "timing"
    ]
    rows = []
    with caller.counting("testing", len(series)) as bar:
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
