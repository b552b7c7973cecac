"""``gcbench workload``: what a workload asks for, and writing it as a trace."""

from pathlib import Path
from typing import Any

import click

from harness.cli.options import take_workloads, workload_options
from harness.files import write_json, write_output, writing
from harness.report.image_file import image_suffix
from harness.report.terminal import make_console, print_pairs, print_table
from harness.report.workload import lengths_table, workload_pairs, workload_plots
from harness.report.workload_image import workload_image
from workloads.summary import summarise
from workloads.traces.mooncake import write_mooncake
from workloads.workload import Workload

SHOW_EXAMPLES = """
\b
Examples:
  gcbench workload show chat
      lengths and arrivals of a workload of the catalogue
  gcbench workload show trace.jsonl --window 600:300 --image trace.svg
      five minutes of a Mooncake trace, as an image too
  gcbench workload show chat --arrivals gamma:20:0.5 --seed 3 --json -
      with other arrivals and another seed, for programs
"""

EXPORT_EXAMPLES = """
\b
Examples:
  gcbench workload export multi-turn --mooncake multi-turn.jsonl
      conversations as a trace, what their prompts share in its hash_ids
  gcbench workload export mine.toml --num-requests 100 --mooncake mine.jsonl
      a workload of one's own, cut
"""

GROUP_EXAMPLES = """
\b
Examples:
  gcbench workload show chat
  gcbench workload export chat --mooncake chat.jsonl
"""

_SEED = click.option("--seed", default=0, show_default=True, help="Seed of the schedule.")


@click.group(epilog=GROUP_EXAMPLES)
def workload() -> None:
    """Show a workload, or write it as a trace; docs/workloads.md says what there is."""


@workload.command(epilog=SHOW_EXAMPLES)
@click.argument("name", metavar="NAME|FILE")
@workload_options
@_SEED
@click.option(
    "--image",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the plots there, .png or .svg.",
)
@click.option("--json", "json_path", metavar="FILE|-", help="Write the summary there.")
def show(*, name: str, seed: int, image: Path | None, json_path: str | None, **flags: Any) -> None:
    """Realise a workload and show what it asks for.

    NAME is of the catalogue, FILE a workload (.toml) or a trace (.csv, .jsonl).
    """
    suffix = "" if image is None else image_suffix(image)
    chosen = _take(name, flags)
    summary = summarise(chosen, chosen.realise(seed), seed)
    if image is not None:
        write_output(image, workload_image(summary, suffix), "--image FILE")
    if json_path:
        write_json(json_path, summary)
    if json_path != "-":
        console = make_console()
        print_pairs(workload_pairs(summary), console)
        print_table(lengths_table(summary), console)
        console.print()
        for line in workload_plots(summary, console.width):
            console.print(line, markup=False, no_wrap=True, overflow="crop")


@workload.command(epilog=EXPORT_EXAMPLES)
@click.argument("name", metavar="NAME|FILE")
@workload_options
@_SEED
@click.option(
    "--mooncake",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a Mooncake trace (.jsonl) there.",
)
def export(*, name: str, seed: int, path: Path, **flags: Any) -> None:
    """Write a workload's requests as a trace.

    The format has arrival times in milliseconds, lengths, and which blocks of 512 tokens prompts
    share. Tokens per step, the cap on concurrency, turns, priorities and what ends an output are
    not in it.
    """
    if path.suffix.lower() != ".jsonl":
        raise ValueError(f"--mooncake {path}: the name must end in .jsonl, to be read as a trace")
    if path.exists() and not path.is_file():
        raise ValueError(f"--mooncake {path}: is no file; name one in a folder")
    schedule = _take(name, flags).realise(seed)
    with writing(path, "--mooncake FILE"):
        write_mooncake(schedule, path)
    print(f"{schedule.num_requests:,} requests written to {path}")


def _take(name: str, flags: dict[str, Any]) -> Workload:
    (chosen,) = take_workloads({"workload": [name]}, flags)
    return chosen
