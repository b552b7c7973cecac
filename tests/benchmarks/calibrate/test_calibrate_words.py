"""What a calibration says, from made-up results."""

import io
import os
from pathlib import Path

import msgspec
import pytest
from calibration_points import OPT

from benchmarks.calibrate.figures import Figure
from benchmarks.calibrate.known import ATTENTION_RATES, LAUNCH, RATES
from benchmarks.calibrate.point import Point
from benchmarks.calibrate.profile_file import profile_toml
from benchmarks.calibrate.result import Calibration, PointResult
from benchmarks.calibrate.words import conclusions, figures_table, points_table, range_words, rate
from engines.builtin.device.profile import FitError, HostLaunch
from harness.machine.describe import Machine
from harness.render.terminal import make_console, print_lines, print_table

GOLDEN = Path(__file__).parents[2] / "golden" / "calibrate.txt"


def point(asked: Point, seconds: float, error: float, spread: float = 0.01) -> PointResult:
    return PointResult(
        **asked._asdict(),
        **asked.load._asdict(),
        step_seconds=[seconds * (1 - spread), seconds, seconds * (1 + spread)],
        measured_seconds=seconds,
        modelled_seconds=seconds * (1 + error),
        error=error,
        linear="arithmetic" if asked.prefill else "bytes",
        attention="bytes",
    )


def figure(name: str, value: float, low: float | None, high: float | None, best=None) -> Figure:
    return Figure(name=name, value=value, low=low, high=high, best=best)


POINTS = [
    point(Point(1, 16, 0), 0.0123, 0.004),
    point(Point(1024, 1024, 0), 0.0921, -0.0312),
    point(Point(0, 0, 128), 0.0134, 0.0007),
    point(Point(64, 16, 512), 0.0331, 0.051, spread=0.2),
]
FIGURES = [
    figure(RATES[0], 3.91e12, 3.62e12, 4.02e12, 4.3e12),
    figure(RATES[1], 6.12e14, 5.4e14, None, 7.9e14),
    figure(LAUNCH, 41e-6, None, 60e-6),
    figure(ATTENTION_RATES[0], 2.9e12, 2.8e12, 3.1e12, 4.3e12),
]


def made_up(points=POINTS, figures=FIGURES, error=(0.017, 0.051)) -> Calibration:
    rates = {each.name: each.value for each in figures}
    host = HostLaunch(
        replay_seconds=310e-6,
        replay_seconds_per_row=0.4e-6,
        eager_seconds=1.9e-3,
        eager_seconds_per_token=20e-9,
        tail_seconds=120e-6,
        wake_up_seconds=0.0,
        gil_free_share=0.0,
    )
    profile = msgspec.structs.replace(OPT, name="p", fit_error=FitError(*error), host=host, **rates)
    return Calibration(
        profile=profile,
        figures=figures,
        points=points,
        launch_error=0.023,
        left_out=[],
        machine=Machine(),
        command="",
    )


def test_tables_and_conclusions():
    result = made_up()
    file = io.StringIO()
    console = make_console(file)
    print_table(points_table(result), console)
    print_table(figures_table(result), console)
    print_lines("Conclusions", conclusions(result), console)
    text = "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
    assert max(map(len, text.splitlines())) <= 100
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "calibrate.txt changed; if meant, run with UPDATE_GOLDEN=1"


@pytest.mark.parametrize(
    ("error", "spread", "words"),
    [
        ((0.05, 0.2), 0.5, "it can stand for the device"),
        ((0.05, 0.21), 0.01, "does not follow a roofline"),
        ((0.06, 0.1), 0.01, "does not follow a roofline"),
        ((0.06, 0.1), 0.3, "quieter machine"),
    ],
)
def test_a_fit_is_good_or_noisy_or_none(error, spread, words):
    points = [point(Point(1, n, 0), 0.01, error[0], spread) for n in range(1, 8)]
    said = conclusions(made_up(points, error=error))
    choices = ("it can stand for the device", "does not follow a roofline", "quieter machine")
    assert [choice for choice in choices if choice in " ".join(said)] == [words]


def test_launch_and_weights_that_only_their_sum_is_known_of_are_one_sentence():
    both = [figure(RATES[0], 2.5e12, 1e12, None), figure(LAUNCH, 20e-6, None, 90e-6)]
    (sentence,) = (words for words in conclusions(made_up(figures=both)) if "left open" in words)
    assert "120 µs together" in sentence  # 250,478,592 bytes at 2.5e12 a second, and 20
    alone = conclusions(made_up(figures=both[:1]))
    assert any("Linear bandwidth is left open: at least 1.00 TB/s" in words for words in alone)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (RATES[0], 4.8e12, "4.80 TB/s"),
        (RATES[0], 9.49e9, "9.49 GB/s"),
        (RATES[0], 12.0, "12.0 B/s"),
        (RATES[1], 6.12e14, "612 TFLOP/s"),
        (RATES[1], 1e3, "1.00 kFLOP/s"),
        (LAUNCH, 41e-6, "41.0 µs"),
        (LAUNCH, 0.0, "0 s"),
    ],
)
def test_a_figure_has_its_unit(name, value, words):
    assert rate(name, value) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1e9, 2e9, "1.00 GB/s to 2.00 GB/s"),
        (1e9, None, "at least 1.00 GB/s"),
        (None, 2e9, "at most 2.00 GB/s"),
        (None, None, "open"),
    ],
)
def test_a_range_may_have_no_end(low, high, words):
    assert range_words(figure(RATES[0], 1.5e9, low, high)) == words


def test_the_file_says_what_was_left_open_over_its_figure():
    result = made_up()
    lines = profile_toml(result.profile, result.figures).splitlines()
    place = lines.index(f"{RATES[1]} = {6.12e14!r}")
    assert lines[place - 1] == "# left open by the points: at least 540 TFLOP/s"
    assert not lines[lines.index(f"{RATES[0]} = {3.91e12!r}") - 1].startswith("#")
    assert not any(line.startswith(ATTENTION_RATES[1]) for line in lines)
