"""A calibration as programs read it: the profile, its figures, every point with its error."""

from collections.abc import Sequence
from datetime import date
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from benchmarks.calibrate.figures import Figure
from benchmarks.calibrate.fit import fit
from benchmarks.calibrate.host_launch import fit_host
from benchmarks.calibrate.known import sizes
from benchmarks.calibrate.measure import StepSamples
from benchmarks.calibrate.point import Point, Sample
from engines.builtin.device.profile import DeviceProfile, FitError
from engines.builtin.model.config import load_model
from engines.protocol import EngineConfig
from harness import format as fmt
from harness.machine.describe import Machine
from harness.report.header import machine_words

Bound = Literal["bytes", "arithmetic"]


class PointResult(msgspec.Struct, frozen=True, kw_only=True):
    """A point as measured and as the profile has it. ``error``: modelled / measured - 1.

    ``num_tokens``, ``context_tokens``, ``token_pairs`` as in `benchmarks.calibrate.point.Load`;
    ``measured_seconds`` is the median of ``step_seconds``; ``linear`` and ``attention`` are bound
    by what takes them longer.
    """

    batch_size: int
    context: int
    prefill: int
    num_tokens: int
    context_tokens: int
    token_pairs: int
    step_seconds: list[float]
    measured_seconds: float
    modelled_seconds: float
    error: float
    linear: Bound
    attention: Bound

    @property
    def words(self) -> str:
        """Which point."""
        return str(Point(self.batch_size, self.context, self.prefill))

    @property
    def spread(self) -> float:
        """Of its steps: interquartile range / median."""
        low, high = np.percentile(self.step_seconds, [25, 75])
        return float(high - low) / self.measured_seconds


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a calibration knows at its end. ``launch_error``: of the fitted launch at
    its worst point, as a share of the step. ``left_out``: points that did not fit, each in a
    sentence.
    """

    profile: DeviceProfile
    figures: list[Figure]
    points: list[PointResult]
    launch_error: float
    left_out: list[str]
    machine: Machine
    command: str


def calibrated(
    config: EngineConfig,
    measured: StepSamples,
    *,
    name: str,
    machine: Machine,
    command: str,
    today: date,
) -> Calibration:
    """Fit a profile of this ``name`` to what was measured on this ``machine``.

    Raises ValueError where a step took no time.
    """
    samples = measured.samples
    found = fit(
        sizes(config, machine),
        [sample.point.load for sample in samples],
        [sample.seconds for sample in samples],
        measured.ceilings,
    )
    launch = fit_host([sample.point for sample in samples], [sample.steps for sample in samples])
    points = [_point(found.profile, sample) for sample in samples]
    errors = [abs(point.error) for point in points]
    fit_error = FitError(round(median(errors), 6), round(max(errors), 6))
    profile = msgspec.structs.replace(
        found.profile,
        name=name,
        host=launch.host,
        fit_error=fit_error,
        source=_source(config, samples, machine, fit_error, today),
    )
    return Calibration(
        profile=profile,
        figures=found.figures,
        points=points,
        launch_error=round(launch.worst, 6),
        left_out=measured.left_out,
        machine=machine,
        command=command,
    )


def _point(profile: DeviceProfile, sample: Sample) -> PointResult:
    load = sample.point.load
    weights, linear, kv, attention = profile.parts(*load)
    modelled = profile.seconds(*load)
    return PointResult(
        **sample.point._asdict(),
        **load._asdict(),
        step_seconds=sample.step_seconds,
        measured_seconds=sample.seconds,
        modelled_seconds=modelled,
        error=modelled / sample.seconds - 1,
        linear="bytes" if weights >= linear else "arithmetic",
        attention="bytes" if kv >= attention else "arithmetic",
    )


def _source(
    config: EngineConfig, samples: Sequence[Sample], machine: Machine, error: FitError, today: date
) -> str:
    """Where a profile's figures come from, in a sentence that says how good they are."""
    weights = "random weights" if load_model(config.model).folder is None else "its weights"
    steps = len(samples[0].step_seconds)  # of all rounds
    versions = f"Python {machine.python}, torch {machine.torch}, gcbench {machine.gcbench}"
    return (
        f"calibrated on --device {config.device} with {weights}, dtype {config.dtype}, "
        f"{today.isoformat()}: {machine_words(machine)}; {versions}; {len(samples)} points of "
        f"{steps} steps, error {fmt.percent(error.median)} median, {fmt.percent(error.worst)} worst"
    )
