"""How often is a verdict wrong, and how often is a change found? A made-up machine, asked often.

`PYTHONPATH=. python tests/harness/noise_model.py` prints the table of docs/evidence.md (minutes).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.statistics.paired_ratio import Ratio, paired_ratio
from harness.statistics.verdict import decide

REPETITIONS = 2000
FAMILY_REPETITIONS = 300


@dataclass(frozen=True, slots=True)
class Noise:
    """Relative spread of a trial; share of trials 5 to 30 % slow; drift that a round shares.

    The slow first trial of an experiment is not here: the experiment throws it away.
    """

    trial_sd: float
    outlier_share: float
    drift_sd: float = 0.03
    drift_correlation: float = 0.7


def simulate(noise: Noise, rounds: int, effects: list[float], seed: int) -> NDArray[np.float64]:
    """Seconds ``[1 + len(effects), rounds]``: a baseline, and a cell slower by each effect."""
    rng = np.random.default_rng(seed)
    drift = rng.standard_normal(rounds)
    rho = noise.drift_correlation
    for i in range(1, rounds):
        drift[i] = rho * drift[i - 1] + np.sqrt(1 - rho**2) * drift[i]
    shape = (1 + len(effects), rounds)
    seconds = np.exp(noise.drift_sd * drift + noise.trial_sd * rng.standard_normal(shape))
    slow = rng.random(shape) < noise.outlier_share
    seconds *= np.where(slow, rng.uniform(1.05, 1.30, shape), 1.0)
    return seconds * (1 + np.array([0.0, *effects]))[:, None]


def ratios(noise: Noise, rounds: int, effects: list[float], seed: int) -> list[Ratio]:
    """The candidates of one simulated experiment against its baseline."""
    baseline, *candidates = simulate(noise, rounds, effects, seed)
    return [paired_ratio(baseline, candidate) for candidate in candidates]


def share_with(
    verdicts: set[str], noise: Noise, rounds: int, effects: list[float], repetitions: int
) -> float:
    """Share of experiments, seeds 0 and up, in which any candidate gets one of ``verdicts``."""
    hits = sum(
        bool(verdicts & set(decide(ratios(noise, rounds, effects, seed), "lower")))
        for seed in range(repetitions)
    )
    return hits / repetitions


def main() -> None:
    """Print the table, one row a noise and number of rounds."""
    wrong = {"better", "worse"}
    head = "trial sd", "slow trials", "rounds", "wrong, A/A", "wrong, 8 × A/A", "3 % found"
    print("|", " | ".join((*head, "coverage", "mde")), "|\n|" + "---|" * 8)
    for sd, slow in ((0.01, 0.05), (0.0125, 0.05), (0.015, 0.0), (0.015, 0.05), (0.02, 0.05)):
        for rounds in (7, 14):
            noise = Noise(sd, slow)
            planted = [ratios(noise, rounds, [0.03], seed)[0] for seed in range(REPETITIONS)]
            found = [decide([ratio], "lower") == ["worse"] for ratio in planted]
            covered = [ratio.ci95[0] <= 1.03 <= ratio.ci95[1] for ratio in planted]
            cells = (
                f"{100 * sd:g} %",
                f"{slow:.0%}",
                f"{rounds}",
                f"{share_with(wrong, noise, rounds, [0.0], REPETITIONS):.2%}",
                f"{share_with(wrong, noise, rounds, [0.0] * 8, FAMILY_REPETITIONS):.1%}",
                f"{np.mean(found):.1%}",
                f"{np.mean(covered):.1%}",
                f"{np.median([ratio.mde for ratio in planted]):.1%}",
            )
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
