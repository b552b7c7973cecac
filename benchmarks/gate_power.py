"""What would the gate say of bursts, steady losses and nothing, on the noise of this machine?

Noise comes from a gate of a commit against itself: its timed trials, kept under FOLDER. A made gate
draws rounds from them, swaps the two sides by a coin, adds what is planted to the steps of one of
them, and is judged as `gcbench gate` judges: usual step, mean and stalls of all cells, one family.

    gcbench gate HEAD HEAD --rounds 40 --budget 0 --output FOLDER
    python -m benchmarks.gate_power FOLDER/*-timing

Each row: the share of made gates in which a judgement of any cell reads worse (of equal commits:
worse or better), and in which all of them read same. The last line of output is one JSON document.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from harness.axes import Cell
from harness.experiment.rounds import Outcomes
from harness.experiment.store import RunStore, trial_key
from harness.statistics.mixture import FloatArray
from harness.tracking.gate.plan import DECIDES, pair, timing_plan
from harness.tracking.gate.timing import compare_timings
from harness.trial.spec import TrialResult

COLUMNS = ("usual", "mean", "stalls", "any", "all same")

Sides = tuple[TrialResult, TrialResult]


class Plant(NamedTuple):
    """Milliseconds on top of every so many-th step; a share of every step."""

    burst_ms: float = 0.0
    every: int = 1
    share: float = 0.0

    def onto(self, seconds: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The steps of a trial with it, from a step on that is drawn: nobody knows the phase."""
        planted = seconds * (1 + self.share)
        planted[int(rng.integers(self.every)) :: self.every] += self.burst_ms / 1e3
        return planted

    def __str__(self) -> str:
        if self.burst_ms:
            return f"{self.burst_ms:g} ms every {self.every} steps"
        return f"+{self.share:.1%} of each step" if self.share else "nothing"


PLANTS = [
    Plant(),
    *(Plant(share=share) for share in (0.01, 0.02, 0.03, 0.05)),
    *(Plant(1, every) for every in (32, 128, 500)),
    *(Plant(5, every) for every in (32, 128, 200, 500, 1000)),
    *(Plant(20, every) for every in (128, 500, 1000)),
]


def measured_rounds(folder: Path) -> dict[Cell, list[Sides]]:
    """By cell, of base: the rounds that both sides have."""
    rounds = dict[tuple[Cell, int], list[TrialResult]]()
    for key, outcome in RunStore(folder.parent, folder.name).load_trials().items():
        if isinstance(outcome, TrialResult) and outcome.mode == "timing":
            cell = msgspec.structs.replace(outcome.cell, release="")
            rounds.setdefault((cell, key.round), []).append(outcome)
    by_cell = dict[Cell, list[Sides]]()
    for (cell, _), sides in rounds.items():
        if len(sides) == 2:
            by_cell.setdefault(cell, []).append((sides[0], sides[1]))
    return by_cell


class MadeGate(NamedTuple):
    """Gates of ``rounds`` rounds each, drawn from the noise of ``measured``."""

    measured: dict[Cell, list[Sides]]
    rounds: int
    tolerance: float

    def judge(self, plant: Plant, seed: int) -> list[tuple[str, str, str]]:
        """Of one of them: what usual step, mean and stalls of each cell read."""
        rng = np.random.default_rng([seed, PLANTS.index(plant)])
        pairs = [pair(str(n), cell, "base", "head", n) for n, cell in enumerate(self.measured)]
        plan = timing_plan(
            "power", pairs, schedules={}, seed=seed, rounds=self.rounds, tolerance=self.tolerance
        )
        outcomes: Outcomes = {}
        for each, rounds in zip(pairs, self.measured.values(), strict=True):
            for number, drawn in enumerate(rng.integers(len(rounds), size=self.rounds), start=1):
                for cell, side in zip(each[1:3], rng.permutation(2), strict=True):
                    result = rounds[drawn][side]
                    steps = np.array(result.step_host_ns) / 1e9
                    if cell is each.head:
                        steps = plant.onto(steps, rng)
                    key = trial_key(number, int(side), cell, "timing")
                    outcomes[key] = _with_steps(result, cell, steps)
        found = compare_timings(pairs, plan, outcomes).by_pair.values()
        return [
            (time.steady.verdict, time.mean.verdict, time.stalls.verdict if time.stalls else "same")
            for time in found
        ]

    def row(self, plant: Plant, count: int) -> dict[str, str | float]:
        """Shares over ``count`` of them."""
        told = {"worse"} if plant != Plant() else {"worse", "better"}
        made = [np.array(self.judge(plant, seed)) for seed in range(count)]
        is_told = np.array([np.isin(gate, list(told)).any(axis=0) for gate in made])
        all_same = np.array([(gate == "same").all() for gate in made])
        shares = [*is_told.mean(axis=0), is_told.any(axis=1).mean(), all_same.mean()]
        return {"planted": str(plant)} | dict(zip(COLUMNS, map(float, shares), strict=True))


def _with_steps(result: TrialResult, cell: Cell, steps: FloatArray) -> TrialResult:
    metrics = result.metrics | {DECIDES: float(steps.mean()), "num_steps": float(len(steps))}
    nanoseconds = (steps * 1e9).astype(int).tolist()
    return msgspec.structs.replace(result, cell=cell, metrics=metrics, step_host_ns=nanoseconds)


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gates", type=int, default=200, help="made ones of each plant")
    parser.add_argument("--equal", type=int, default=1000, help="made ones with nothing planted")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--tolerance", type=float, default=0.03)
    asked = parser.parse_args()
    measured = measured_rounds(asked.folder)
    for cell, rounds in measured.items():
        print(f"{cell.representation} · {cell.delivery}: {len(rounds)} rounds")
    gates = MadeGate(measured, asked.rounds, asked.tolerance)
    print(f"{'planted':24}" + "".join(f"{name:>10}" for name in COLUMNS))
    rows = []
    for plant in PLANTS:
        row = gates.row(plant, asked.equal if plant == Plant() else asked.gates)
        print(f"{plant!s:24}" + "".join(f"{row[name]:10.1%}" for name in COLUMNS), flush=True)
        rows.append(row)
    print(json.dumps({"rounds": asked.rounds, "tolerance": asked.tolerance, "rows": rows}))


if __name__ == "__main__":
    main()
