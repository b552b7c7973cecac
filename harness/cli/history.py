"""``gcbench history``: what was measured before, and what changed between two commits."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pandas as pd

from engines.nearest import nearest
from harness.cli.exit_codes import ExitCode
from harness.cli.options import CommaList
from harness.cli.say import say
from harness.cli.session import checked
from harness.files import write_json, write_output, writing
from harness.format import printable
from harness.report.history import changes_tables, history_headline, history_pairs, not_compared
from harness.report.terminal import make_console, print_lines, print_pairs, print_table, print_title
from harness.tracking.changes import changes, latest_changes
from harness.tracking.history import History, load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.otava import otava_files
from harness.tracking.reruns import by_series
from harness.tracking.triage import NOTHING_SAID, load_triage

SCHEMA = "gcbench.history/2"

EXAMPLES = """
\b
Examples:
  gcbench history
      results below ./results; the last two commits of each series
  gcbench history asv.conf.json --between 078ebfa8 1c323ccd
      two commits, from the results of any project that asv measures
  gcbench history --metric gc_collections_gen0,tpot_median --json changes.json
      two metrics only, for programs
  gcbench history --csv figures.csv --otava otava
      every value as a table, and for Apache Otava
"""


@click.command(epilog=EXAMPLES)
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option("--between", nargs=2, metavar="BASE HEAD", help="Beginnings of two commits' hashes.")
@click.option("--details", is_flag=True, help="Show the series that have not changed, too.")
@click.option("--metric", "metrics", type=CommaList(), help="These metrics only.")
@click.option("--json", "json_path", metavar="FILE|-", help="Write the changes there.")
@click.option("--csv", "csv_path", metavar="FILE|-", help="Write the figures there, one a row.")
@click.option("--otava", metavar="FOLDER", help="Write the figures there for Apache Otava.")
@click.pass_context
def history(
    ctx: click.Context,
    /,
    results: Path,
    between: tuple[str, str] | None,
    details: bool,
    metrics: list[str] | None,
    json_path: str | None,
    csv_path: str | None,
    otava: str | None,
) -> None:
    """Read asv's results and raw trials from RESULTS and say what changed, metric by metric.

    RESULTS is an asv results folder, an asv.conf.json, a folder of raw trials, or a folder with
    these below it. Each series is judged by its whole history; without --between its last two
    commits are compared. Nothing is written or moved there.
    """
    if json_path == csv_path == "-":
        raise ValueError("--json - and --csv - both go to standard output; name a file for one")
    checked(csv_path, "--csv")
    found = load_history(results)
    for problem in found.problems:
        say(problem)
    figures = found.figures
    if metrics and len(figures):
        figures = figures[figures["metric"].isin(_known(metrics, figures))]
    table = _compared(found, figures, between)
    if json_path:
        write_json(json_path, _document(found, table))
    if csv_path:
        _write_csv(figures, csv_path)
    if otava:
        _write_otava(figures, Path(otava))
    if "-" not in (json_path, csv_path):
        console = make_console()
        print_title(history_headline(table), "", console)
        for part in changes_tables(table, details=details):
            print_table(part, console)
        print_lines("Not compared", not_compared(table), console)
        console.print()
        print_pairs(history_pairs(found), console)
    if (table["verdict"] == "missing").all():
        say(f"nothing to compare: {_why(found, between)}")
        ctx.exit(ExitCode.NOT_MEASURED)


def _compared(
    found: History, figures: pd.DataFrame, between: tuple[str, str] | None
) -> pd.DataFrame:
    """Two commits, or each series' last two. Raises ValueError for a commit that is rewritten."""
    beside = found.config
    triage = load_triage(beside.parent / "triage.toml") if beside else NOTHING_SAID
    today = datetime.now(UTC).date()
    verdicts = judge_all(figures, by_series(found.reruns), triage, today)
    for prefix in between or ():
        if gone := [each for each in found.rewritten if each.startswith(prefix.lower() or "-")]:
            raise ValueError(
                f"{gone[0][:12]} is no longer in the history of a branch of {beside}; "
                "name commits that are"
            )
    if between and len(figures):
        return changes(figures, verdicts, *between)
    return latest_changes(figures, verdicts)


def _write_csv(figures: pd.DataFrame, path: str) -> None:
    """All figures, a row each; samples, which are lists, are left out. Raises StoreError."""
    text = figures.drop(columns="samples").to_csv(index=False, lineterminator="\n")
    if path == "-":
        is_shown = sys.stdout.isatty()
        sys.stdout.write("\n".join(map(printable, text.split("\n"))) if is_shown else text)
    else:
        write_output(path, text.encode(), "--csv FILE")


def _write_otava(figures: pd.DataFrame, folder: Path) -> None:
    """One file a test, and the configuration that names them. Raises StoreError, ValueError."""
    files = otava_files(figures)
    if not files:
        raise ValueError("--otava: these results hold no current figure of asv's to export")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_output(folder / name, text.encode(), "--otava FOLDER")


def _known(metrics: list[str], figures: pd.DataFrame) -> list[str]:
    names = [str(name) for name in figures["metric"].unique()]
    for metric in metrics:
        if metric not in names:
            near = ", ".join(nearest(metric, sorted(names)))
            raise ValueError(f"no metric {metric!r} in these results; did you mean {near}?")
    return metrics


def _why(found: History, between: tuple[str, str] | None) -> str:
    if found.figures.empty:
        return "these are raw trials, and commits are compared from asv's results"
    if between:
        return (
            "no series has a current figure at both commits; "
            "measure both with today's benchmarks: `asv run BASE^!`, `asv run HEAD^!`"
        )
    return "no series has current figures at two commits; measure another with `asv run`"


def _document(found: History, table: pd.DataFrame) -> dict[str, Any]:
    """What `--json` writes; a value that is none is null."""
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    read = {name: len(getattr(found, name)) for name in ("figures", "trials", "failures")}
    return {"schema": SCHEMA, "read": read, "changes": rows, "problems": found.problems}
