"""How long do a device's steps take, and which profile makes the modelled device as slow?

    python -m benchmarks.calibrate --device cpu
        OPT-125m with random weights on this machine, to opt-125m-cpu.toml
    python -m benchmarks.calibrate --device cuda --model ~/models/Llama-3-8B \\
        --output llama-here.toml --batch-size 1,32,256,1024 --context 128,512,2000 \\
        --prefill 128,1024,4096
        a GPU: steps large enough to be bound by its arithmetic
    gcbench compare --device modelled --axis device-profile=llama-here.toml
        what was calibrated, on a machine without it

Steps are batch × context for decoding, and prompt tokens alone and beside each batch. Every point's
error is told, and what the points leave open. docs/calibrate.md.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.calibrate.known import model_name
from benchmarks.calibrate.point import Point
from benchmarks.calibrate.points import grid, sized_config
from benchmarks.calibrate.profile_file import profile_toml
from benchmarks.calibrate.result import Calibration, calibrated
from benchmarks.calibrate.words import conclusions, figures_table, points_table
from engines.protocol import EngineConfig
from harness.files import StoreError, write_json, write_output
from harness.machine.describe import describe
from harness.render.terminal import make_console, print_lines, print_pairs, print_table
from harness.report.header import machine_words

STEPS = 3
"""Timed steps of a point in a round."""


def main(arguments: Sequence[str]) -> int:
    """Measure, fit, write and show; 2 for what cannot be done, 130 where it was interrupted."""
    parser = _parser()
    given = parser.parse_args(arguments)
    output = given.output or Path(f"{model_name(given.model)}-{given.device}.toml")
    try:
        _check_writable(output, given.json)
        if given.rounds < 1:
            raise ValueError(f"--rounds {given.rounds}: must be at least 1")
        points = grid(given.batch_size, given.context, given.prefill)
        config = sized_config(points, STEPS, device=given.device, model=given.model)
        command = shlex.join(["python", "-m", "benchmarks.calibrate", *arguments])
        result = _calibrate(config, points, given.rounds, output.stem, command)
        profile = profile_toml(result.profile, result.figures)
        write_output(output, profile.encode(), "--output FILE.toml")
        if given.json:
            write_json(given.json, result)
    except (ValueError, StoreError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("calibrate: interrupted", file=sys.stderr)
        return 130
    _show(result, config, output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calibrate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", required=True, choices=["cpu", "cuda"])
    parser.add_argument(
        "--model",
        default="opt-125m",
        help="a shipped config, a config.json, or a model's folder (default: opt-125m)",
    )
    for flag, numbers, words in (
        ("--batch-size", [1, 8, 64], "rows that decode"),
        ("--context", [16, 256, 1024], "tokens that each of them has"),
        ("--prefill", [16, 128, 512], "prompt tokens of a row alone, and beside each batch"),
    ):
        shown = ",".join(map(str, numbers))
        parser.add_argument(
            flag, type=whole_numbers, default=numbers, help=f"{words} (default: {shown})"
        )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="over all points; a point's time is the median of its steps in all (default: 3)",
    )
    parser.add_argument(
        "--output", type=Path, help="where the profile goes (default: MODEL-DEVICE.toml)"
    )
    parser.add_argument("--json", type=Path, help="where every step's time goes")
    return parser


def whole_numbers(text: str) -> list[int]:
    """Those that commas separate."""
    return [int(each) for each in text.split(",")]


def _check_writable(output: Path, json: Path | None) -> None:
    """Raises ValueError now rather than after the measurement."""
    if output.suffix != ".toml":
        raise ValueError(
            f"--output {output}: the name must end in .toml, to be read as a device profile"
        )
    for flag, path in (("--output", output), ("--json", json)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ValueError(f"{flag} {path}: cannot be written; name a file in a folder")


def _calibrate(
    config: EngineConfig, points: Sequence[Point], rounds: int, name: str, command: str
) -> Calibration:
    from benchmarks.calibrate.measure import measure  # torch: a mistake should be told before

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("building the model", total=rounds * len(points))
        measured = measure(
            config,
            points,
            STEPS,
            rounds,
            lambda point: bar.update(task, advance=1, description=str(point)),
        )
    return calibrated(
        config, measured, name=name, machine=describe(), command=command, today=date.today()
    )


def _show(result: Calibration, config: EngineConfig, output: Path) -> None:
    console = make_console()
    pairs = [
        ("model", result.profile.model),
        ("device", f"{config.device}, {config.dtype}: {result.profile.accelerator}"),
        ("machine", machine_words(result.machine)),
    ]
    print_pairs(pairs, console)
    print_table(points_table(result), console)
    print_table(figures_table(result), console)
    print_lines("Left out", result.left_out, console)
    said = [*conclusions(result), f"Take it with --device modelled --axis device-profile={output}."]
    print_lines("Conclusions", said, console, style="bold")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
