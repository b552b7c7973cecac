"""``gcbench calibrate``: a device's step times, and the profile that `modelled` takes for it."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import click
from rich.console import Console

from harness.calibrate import Point
from harness.calibrate.known import model_name
from harness.calibrate.points import MIN_POINTS, grid, sized_config
from harness.cli.exit_codes import ExitCode
from harness.cli.options import CommaList
from harness.cli.progress import ProgressBar
from harness.cli.session import checked, command_line
from harness.files import write_json, write_output
from harness.machine.describe import describe
from harness.report.header import machine_words
from harness.report.terminal import make_console, print_lines, print_pairs, print_table

EXAMPLES = """
\b
Examples:
  gcbench calibrate --device cpu
      OPT-125m with random weights on this machine, to opt-125m-cpu.toml
  gcbench calibrate --device cuda --model ~/models/Llama-3-8B \\
      --output llama-here.toml --batch-size 1,32,256,1024 \\
      --context 128,512,2000 --prefill 128,1024,4096
      a GPU: steps large enough to be bound by its arithmetic
  gcbench compare --device modelled --device-profile llama-here.toml
      what was calibrated, on a machine without it
  gcbench calibrate --device modelled --device-profile opt-125m-h200 \\
      --output again.toml
      what a calibration finds for a device whose figures are known
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--device",
    required=True,
    metavar="NAME",
    help="cpu or cuda; modelled: what is found of a profile that is known.",
)
@click.option(
    "--model",
    default="opt-125m",
    show_default=True,
    metavar="NAME|PATH",
    help="A shipped config, a config.json, or a model's folder.",
)
@click.option(
    "--dtype",
    default="auto",
    show_default=True,
    help="Of cpu and cuda: auto, float32, bfloat16 or float16.",
)
@click.option(
    "--device-profile",
    default="",
    metavar="NAME|FILE",
    help="Of modelled: whose steps to take.  [default: the model's H200]",
)
@click.option(
    "--batch-size",
    type=CommaList(int),
    default=[1, 8, 64],
    help="Rows that decode.  [default: 1,8,64]",
)
@click.option(
    "--context",
    type=CommaList(int),
    default=[16, 256, 1024],
    help="Tokens that each of them has.  [default: 16,256,1024]",
)
@click.option(
    "--prefill",
    type=CommaList(int),
    default=[16, 128, 512],
    help="Prompt tokens of a row alone, and beside each batch.  [default: 16,128,512]",
)
@click.option(
    "--steps", default=3, show_default=True, metavar="N", help="Timed steps of a point in a round."
)
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    metavar="N",
    help="Rounds over all points; a point's time is the median of its steps in all of them.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="Where the profile goes.  [default: MODEL-DEVICE.toml]",
)
@click.option("--json", "json_path", metavar="FILE|-", help="Write everything there.")
@click.option("--quiet", is_flag=True, help="No progress, no tables.")
@click.pass_context
def calibrate(
    ctx: click.Context,
    /,
    *,
    device: str,
    model: str,
    dtype: str,
    device_profile: str,
    batch_size: list[int],
    context: list[int],
    prefill: list[int],
    steps: int,
    rounds: int,
    output: Path | None,
    json_path: str | None,
    quiet: bool,
) -> None:
    """Measure how long a device's steps take, and fit a profile for --device modelled to them.

    Steps are batch × context for decoding, and prompt tokens alone and beside each batch. Every
    point's error is told, and what the points leave open.
    """
    for flag, number in (("--steps", steps), ("--rounds", rounds)):
        if number < 1:
            raise ValueError(f"{flag} {number}: must be at least 1")
    path = _checked_profile(output or Path(f"{model_name(model)}-{device}.toml"))
    json_path = checked(json_path, "--json")
    points = grid(batch_size, context, prefill)
    config = sized_config(
        points, steps, device=device, model=model, dtype=dtype, device_profile=device_profile
    )
    # Imported only now: torch takes seconds, and a mistake should be told at once.
    from harness.calibrate.measure import measure
    from harness.calibrate.profile_file import profile_toml
    from harness.calibrate.result import calibrated
    from harness.calibrate.words import conclusions, figures_table, points_table

    with _PointProgress(points, rounds, quiet) as progress:
        measured = measure(config, points, steps, rounds, progress.on_point)
    if not measured.samples:
        fitting = len(points) - len(measured.left_out)
        Console(stderr=True, highlight=False).print(
            f"gcbench: nothing measured: {fitting} of {len(points)} points fit into the KV cache, "
            f"{MIN_POINTS} are needed; {measured.left_out[0]}",
            markup=False,
        )
        ctx.exit(ExitCode.NOT_MEASURED)
    result = calibrated(
        config,
        measured,
        name=path.stem,
        machine=describe(),
        command=command_line(),
        today=date.today(),
    )
    write_output(path, profile_toml(result.profile, result.figures).encode(), "--output FILE.toml")
    if json_path:
        write_json(json_path, result)
    if not quiet and json_path != "-":
        console = make_console()
        accelerator = result.profile.accelerator
        pairs = [
            ("model", result.profile.model),
            ("device", accelerator if result.is_modelled else f"{device}, {dtype}: {accelerator}"),
            ("machine", machine_words(result.machine)),
        ]
        print_pairs(pairs, console)
        print_table(points_table(result), console)
        print_table(figures_table(result), console)
        print_lines("Left out", result.left_out, console)
        said = [*conclusions(result), f"Take it with --device modelled --device-profile {path}."]
        print_lines("Conclusions", said, console, style="bold")


def _checked_profile(path: Path) -> Path:
    """Refused now rather than after the measurement."""
    if path.suffix != ".toml":
        raise ValueError(
            f"--output {path}: the name must end in .toml, to be read as a device profile"
        )
    if path.exists() and not path.is_file():
        raise ValueError(f"--output {path}: is no file; name one in a folder")
    checked(str(path), "--output")
    return path


def _cost(point: Point) -> float:
    """Of a point's steps, about, for the time left: a weight is read once, a token computed with
    it costs as much as a hundred to attend to.
    """
    return 16 + point.batch_size + point.prefill + point.batch_size * point.context / 100


class _PointProgress(ProgressBar):
    """By the points' cost; a plain line now and then where nobody watches."""

    def __init__(self, points: Sequence[Point], rounds: int, quiet: bool) -> None:
        super().__init__("building the model", rounds * sum(map(_cost, points)), quiet)
        self._total = rounds * len(points)

    def on_point(self, point: Point) -> None:
        """A point has been measured."""
        self._done += 1
        words = f"{self._done} of {self._total}: {point}"
        self._bar.update(self._task, advance=_cost(point), description=words)
        if not (self._quiet or self._console.is_terminal) and self._done % 10 == 0:
            self._console.print(words, highlight=False)
