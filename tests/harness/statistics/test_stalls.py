"""Stalls of one side are told from those of both, and from those of a busy machine."""

from itertools import product

import numpy as np
import pytest
from examples import every, examples
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics.stalls import LEAST_STALL_SECONDS, Stalls, compare_stalls

STEP, TURN, STEPS = 200e-6, 25, 500
seeds = st.integers(0, 2**32 - 1)
Round = tuple[np.ndarray, np.ndarray]


def busy_round(rng: np.random.Generator, hits: float = 3.0) -> Round:
    """Both sides as a busy machine has them: in each some steps take milliseconds more."""
    sides = rng.normal(STEP, STEP / 20, (2, STEPS))
    sides[:, ::16] += 0.8e-3  # a block is full: both do it in the same step
    for side in sides:
        at = rng.integers(STEPS, size=rng.poisson(hits))
        side[at] += rng.exponential(1.5e-3, len(at))
    return sides[0], sides[1]


def compared(rounds: list[Round]) -> Stalls:
    return compare_stalls(rounds, TURN)


def stalling(rng: np.random.Generator, seconds: float, every_steps: int) -> Stalls:
    """Seven rounds in which the second side stalls every so many steps, from anywhere."""
    rounds = [busy_round(rng) for _ in range(7)]
    for _, after in rounds:
        after[int(rng.integers(every_steps)) :: every_steps] += seconds
    return compared(rounds)


def test_equal_sides_have_none() -> None:
    before, _ = busy_round(np.random.default_rng(0))
    found = compared([(before, before.copy())] * 7)
    assert (found.before, found.after, found.share, found.ci95, found.p) == (0, 0, 0, (0, 0), 1.0)


def test_what_stands_in_the_rows_is_what_is_counted() -> None:
    before, after = np.full(STEPS, STEP), np.full(STEPS, STEP)
    after[[10, 11, 300]] += 4e-3  # two on end are one
    before[70] += 1e-3
    before[400] += LEAST_STALL_SECONDS * 0.9
    found = compared([(before, after)])
    assert (found.before, found.after, found.steps, found.rounds) == (1, 2, STEPS, 1)
    assert (found.longest_before, found.longest_after) == pytest.approx((1e-3, 4e-3))
    assert found.share == pytest.approx((12e-3 - 1e-3) / before.sum())


@examples(30)
@given(seeds, st.integers(1, 4))
def test_the_p_value_is_that_of_all_throws(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(1e-3, 2e-2, count) * rng.choice([-1, 1], count)
    rounds = []
    for size in sizes:
        sides = np.full((2, STEPS), STEP)
        sides[int(size > 0), int(rng.integers(STEPS))] += abs(size)
        rounds.append((sides[0], sides[1]))
    sums = [
        abs(sum(sign * abs(s) for sign, s in zip(signs, sizes, strict=True)))
        for signs in product((-1, 1), repeat=count)
    ]
    exact = np.mean([each >= abs(sizes.sum()) * (1 - 1e-9) for each in sums])
    assert compared(rounds).p == pytest.approx(exact, abs=0.02)


@examples(30)
@given(seeds)
def test_the_other_way_round_all_signs_turn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rounds = [busy_round(rng) for _ in range(4)]
    one, other = compared(rounds), compared([(b, a) for a, b in rounds])
    assert (one.before, one.after) == (other.after, other.before)
    total = [sum(r[side].sum() for r in rounds) for side in (0, 1)]
    assert one.share * total[0] == pytest.approx(-other.share * total[1])


def test_many_stalls_are_rarer_than_throws_can_tell() -> None:
    """Sixty of one size on one side: two of 2^60 throws are as far out, so 1e-12 is too much."""
    rounds = []
    for _ in range(6):
        before, after = np.full((2, STEPS), STEP)
        after[::50] += 4e-3
        rounds.append((before, after))
    assert 2**-59 <= compared(rounds).p < 1e-8


def test_a_busy_machine_makes_no_stalls() -> None:
    rng = np.random.default_rng(1)
    found = [
        compared([busy_round(rng) for _ in range(7)]).p for _ in range(max(60, 200 // every()))
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.08
    assert min(found) > 0.0005


@pytest.mark.parametrize(
    ("seconds", "every_steps"), [(1e-3, 32), (5.6e-3, 200), (8e-3, 128), (20e-3, 128)]
)
def test_stalls_are_found_beside_those_of_a_busy_machine(seconds: float, every_steps: int) -> None:
    rng = np.random.default_rng(2)
    found = [stalling(rng, seconds, every_steps) for _ in range(20)]
    assert sum(each.p < 0.0025 for each in found) >= 17
    assert np.median([each.share for each in found]) == pytest.approx(
        seconds / every_steps / (STEP + 0.8e-3 / 16), rel=0.15
    )


def test_sides_with_other_numbers_of_steps_are_held_against_their_own_median() -> None:
    before, after = np.full(STEPS, STEP), np.full(STEPS // 2, 2 * STEP)
    after[3] += 5e-3
    found = compared([(before, after)])
    assert (found.before, found.after, found.steps) == (0, 1, STEPS // 2)
