"""Predicted collections against CPython's own, and against its rules played object by object."""

import json
import subprocess
import sys
from array import array

import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st

from harness.collector.young_counts import packed, unpacked
from harness.explain.cadence import Cadence, predict

thresholds = st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(0, 3))


def played(changes, thresholds, long_lived, *, at_once):
    """Modules/gcmodule.c with an entry for each object; the object made last goes first."""
    generations = [[], [], []]
    counts, done, pending, total = [0, 0, 1], [0, 0, 0], 0, long_lived

    def collect() -> None:
        nonlocal pending, total
        for which in (2, 1, 0):
            if counts[which] <= thresholds[which]:
                continue
            if which == 2 and pending < total // 4:
                continue
            done[which] += 1
            counts[: which + 1] = [0] * (which + 1)
            young = [each for part in reversed(generations[: which + 1]) for each in part]
            for part in generations[: which + 1]:
                part.clear()
            generations[min(which + 1, 2)] += young
            if which < 2:
                counts[which + 1] += 1
            if which == 1:
                pending += len(young)
            if which == 2:
                pending, total = 0, long_lived + len(generations[2]) - before
            return

    # What goes that was made before the window is of the oldest generation.
    before = sum(abs(change) for change in changes)
    generations[2] = [0] * before
    for change in changes:
        for _ in range(max(0, change)):
            counts[0] += 1
            generations[0].append(1)
            if at_once and 0 < thresholds[0] < counts[0]:
                collect()
        for _ in range(max(0, -change)):
            counts[0] = max(0, counts[0] - 1)
            next(part for part in generations if part).pop()
        if not at_once and 0 < thresholds[0] < counts[0]:
            collect()
    return tuple(done)


@examples(300)
@given(st.lists(st.integers(-60, 90), max_size=60), thresholds, st.integers(0, 200), st.booleans())
@example([50] * 20, (10, 1, 1), 0, True)
@example([50] * 20, (10, 1, 1), 0, False)
@example([30, 30, -60] * 20, (40, 0, 0), 40, True)
def test_it_is_what_the_rules_say_object_by_object(changes, thresholds, long_lived, at_once):
    said = predict(np.array(changes, np.int64), thresholds, long_lived, at_once=at_once)
    assert said == played(changes, thresholds, long_lived, at_once=at_once)


PROGRAM = """
import gc, json, random, sys
from array import array

import numpy as np

from gcbench.opcodes import OpcodeCounter
from harness.explain.cadence import predict

def work():
    draw, kept = random.Random(1), []
    for i in range(4000):
        kind = draw.random()
        if kind < 0.3:
            kept.append([i])
        elif kind < 0.4:
            kept += [[j] for j in range(draw.randint(1, 400))]
        elif kind < 0.6:
            passing = [{j} for j in range(draw.randint(1, 900))]
        elif kind < 0.7:
            del kept[: draw.randint(0, len(kept))]
        else:
            kept.append({i: list(map(list, [()] * draw.randint(0, 9)))})
        if len(kept) > 9000:
            kept.clear()

thresholds = tuple(map(int, sys.argv[1:]))
gc.disable()
gc.collect()
log, held = array("i"), [{} for _ in range(1 << 17)]
with OpcodeCounter(log):
    work()
held = None
gc.set_threshold(*thresholds)
gc.collect()
long_lived = len(gc.get_objects())
gc.collect(1)
before = gc.get_stats()
gc.enable()
work()
gc.disable()
done = [b["collections"] - a["collections"] for a, b in zip(before, gc.get_stats())]
changes = np.array(log, np.int64)
print(json.dumps([done, predict(changes, thresholds, long_lived,
                                at_once=sys.version_info < (3, 12))]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("thresholds", [(700, 10, 10), (2000, 3, 3), (300, 5, 10)])
def test_it_is_what_this_interpreter_does(thresholds):
    command = [sys.executable, "-c", PROGRAM, *map(str, thresholds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    observed, predicted = json.loads(done.stdout)
    assert observed[0] > 0
    for generation, of in ((0, 0.03), (1, 0.03), (2, 0)):
        assert abs(predicted[generation] - observed[generation]) <= max(
            1, of * observed[generation]
        )


def test_changes_survive_their_packing():
    changes = array("i", [5, -3, 2**31 - 1, -(2**31)])
    assert unpacked(packed(changes)).tolist() == changes.tolist()
    assert not len(unpacked(packed(array("i"))))


@pytest.mark.parametrize(
    ("predicted", "observed", "is_near"),
    [
        ((103, 10, 0), (100, 10, 0), True),
        ((104, 10, 0), (100, 10, 0), False),
        ((1, 0, 0), (0, 0, 0), True),
        ((2, 0, 0), (0, 0, 0), False),
        ((100, 10, 41), (100, 10, 40), True),
        ((100, 10, 42), (100, 10, 40), False),
        ((100, 14, 0), (100, 10, 0), False),
    ],
)
def test_near_is_within_3_percent_or_one_and_within_one_of_the_oldest(predicted, observed, is_near):
    found = Cadence(
        label="",
        python="3.11.7",
        thresholds=(700, 10, 10),
        long_lived=0,
        num_steps=1,
        predicted=predicted,
        observed=observed,
    )
    assert found.is_near == is_near
