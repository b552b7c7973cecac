"""How near do modelled gains come to those measured on an H200, and what makes the difference?

    python -m benchmarks.modelled_gains

From results/published/gpu alone. Of each shape of tokens, the change of request throughput against
lists: measured on the H200; measured, with the host phases of each trial at one speed, told by its
launch, which is the same code in all of them; and modelled on the same machine with the shipped
profile: its launch and its device in the place of those that the stored modelled trials had, with
their other phases.
"""

import json
from pathlib import Path
from statistics import geometric_mean, mean
from typing import NamedTuple

from engines.builtin.device.profile import DeviceProfile, load_profile

PUBLISHED = Path(__file__).parents[1] / "results" / "published" / "gpu"
HOST = "schedule", "launch", "handoff", "process"
RUNNER_SECONDS = 65e-6
"""Of a launch, in the model runner, which runs beside a modelled device as well."""

Trials = list[dict[str, float]]


class Gain(NamedTuple):
    """Of a cell over the baseline, each as a ratio; ``ci95`` is that of ``measured``."""

    cell: str
    measured: float
    ci95: tuple[float, float]
    at_one_speed: float
    modelled: float


def trials_of(name: str) -> dict[str, Trials]:
    """Of each cell that is processed inline, the seconds of each phase by trial."""
    return {
        cell["id"]: [
            dict(zip((*HOST, "wait"), each, strict=True))
            for each in zip(
                *(cell["metrics"][f"phase_{phase}"]["samples"] for phase in (*HOST, "wait")),
                strict=True,
            )
            if None not in each
        ]
        for cell in json.loads((PUBLISHED / name).read_bytes())["cells"]
        if cell["axes"]["output_processing"] == "inline"
    }


def gains(profile: DeviceProfile) -> list[Gain]:
    """Every cell but the baseline, which is the first."""
    measured, modelled = trials_of("gpu-verdict.json"), trials_of("gpu-verdict-modelled.json")
    baseline, *cells = measured
    usual = mean(each["launch"] for trials in measured.values() for each in trials)
    found = {
        each["candidate"]: (each["ratio"], tuple(each["ci95"]))
        for each in json.loads((PUBLISHED / "gpu-verdict.json").read_bytes())["comparisons"]
        if each["metric"] == "request_throughput"
    }

    def at_one_speed(cell: str) -> float:
        return geometric_mean(
            1 / (usual / each["launch"] * sum(each[phase] for phase in HOST) + each["wait"])
            for each in measured[cell]
        )

    def on_profile(cell: str) -> float:
        return geometric_mean(1 / with_profile(each, profile) for each in modelled[cell])

    return [
        Gain(
            cell,
            *found[cell],
            at_one_speed(cell) / at_one_speed(baseline),
            on_profile(cell) / on_profile(baseline),
        )
        for cell in cells
    ]


def with_profile(trial: dict[str, float], profile: DeviceProfile) -> float:
    """Seconds of the trial's mean step with this launch and this device instead of its own."""
    host = profile.host
    # Six of 206 steps compute prompts alone; the others decode at a mean context of 148 tokens.
    device = profile.seconds(1024, 1024 * 148, 1024 * 148) * 200 / 206
    others = sum(trial[phase] for phase in ("schedule", "handoff", "process"))
    return others + RUNNER_SECONDS + host.seconds_before(1024, 0) + device + host.wake_up_seconds


def main() -> None:
    """Print a row a cell, in per cent."""
    print(f"{'':32}{'H200':>8}{'':>18}{'one speed':>11}{'modelled':>10}{'off by':>8}")
    for cell, measured, (low, high), at_one_speed, modelled in gains(
        load_profile("opt-125m-h200-measured")
    ):
        shown = [100 * (each - 1) for each in (measured, low, high, at_one_speed, modelled)]
        row = "{:+8.1f} ({:+.1f} to {:+.1f}){:+11.1f}{:+10.1f}".format(*shown)
        print(f"{cell:32}{row:46}{100 * abs(modelled - measured):8.1f}")


if __name__ == "__main__":
    main()
