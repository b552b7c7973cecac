"""A soak says where the probe and the hooks differ, and holds for as long as a test may take."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compared import Image, Seen, compare
from flat import FEWEST, Sample, lines_of
from truth import FORKED, STARTED, TO_BE_KILLED

HERE = Path(__file__).parent
OURS, THEIRS = 1, 2


def image(pid: int, began: int, *generations: int, how: int = STARTED, space: int = OURS) -> Image:
    """One that collects each 100 ns from ``began`` on, for 50."""
    made = Image(pid, began, space, how)
    moments = [began + 100 * (number + 1) for number in range(len(generations))]
    made.collections = [
        Seen(at, at + 50, generation) for at, generation in zip(moments, generations, strict=True)
    ]
    return made


def probed(*images: tuple[int, Image]) -> dict[int, list[Seen]]:
    """What the probe has of them by the PID that it sees: within the hooks' moments."""
    found: dict[int, list[Seen]] = {}
    for pid, each in images:
        found.setdefault(pid, []).extend(
            Seen(begin + 10, end - 10, generation) for begin, end, generation in each.collections
        )
    return found


def document(images: int, collections: int, *not_probed: int) -> dict[str, Any]:
    return {
        "processes": [{"images": images, "generations": [{"collections": collections}]}],
        "not_probed": [{"pid": each} for each in not_probed],
        "notes": [],
    }


def test_images_of_one_pid_and_of_another_namespace_are_told_apart():
    images = [
        image(7, 0, 0, 1),
        image(7, 1_000, 2),  # its exec
        image(7, 2_000, 2, 2, how=FORKED),  # the PID's next process
        image(1, 1_010, 2, space=THEIRS),  # at nearly the same moments
        image(8, 3_000, how=FORKED),
    ]
    seen = probed((7, images[0]), (7, images[1]), (7, images[2]), (90, images[3]))
    compared = compare(images, seen, document(4, 6), OURS)
    assert compared.first_difference == ""
    assert compared.figures["images by their hooks"] == 5
    assert [each.found for each in images] == [2, 1, 2, 1, 0]


def test_images_whose_pid_was_never_known_are_told_apart_by_their_moments():
    images = [image(1, 0, 0, 0, space=THEIRS), image(2, 30, 0, 0, space=THEIRS)]
    # The first is held up before its second collection, in which the other has both of its own.
    images[0].collections[1] = Seen(101, 1_000, 0)
    seen = {0: sorted([Seen(101, 145, 0), Seen(990, 999, 0), *probed((0, images[1]))[0]])}
    compared = compare(images, seen, document(2, 4), OURS)
    assert compared.first_difference == ""
    assert [each.found for each in images] == [2, 2]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_collection_that_is_missing_names_its_image(at):
    images = [image(7, 0, 0, 1, 2), image(9, 1_000, 1)]
    seen = probed((7, images[0]), (9, images[1]))
    del seen[7][at]
    difference = compare(images, seen, document(2, 3), OURS).first_difference
    assert difference == (
        "Of the interpreter with PID 7 that began at 0 the probe lacks 1 of 3 collections."
    )


def test_a_collection_of_another_generation_is_missing():
    images = [image(7, 0, 0)]
    compared = compare(images, {7: [Seen(110, 140, 1)]}, document(1, 1), OURS)
    assert "lacks 1 of 1" in compared.first_difference


@pytest.mark.parametrize(
    ("how", "more", "says"),
    [
        (TO_BE_KILLED, 1, ""),
        (TO_BE_KILLED, 2, "has 2 collections more"),
        (STARTED, 1, "has 1 collections more"),
    ],
)
def test_a_killed_process_may_have_one_collection_that_its_hook_could_not_write(how, more, says):
    images = [image(7, 0, 0, how=how)]
    seen = probed((7, images[0]))
    seen[7] += [Seen(1_000 + number, 1_001 + number, 0) for number in range(more)]
    compared = compare(images, seen, document(1, 1 + more), OURS)
    assert says in compared.first_difference
    assert bool(compared.first_difference) == bool(says)


def test_a_fork_without_a_ring_is_named_or_it_is_a_difference():
    images = [image(7, 0, 1), image(9, 500, 1, 1, how=FORKED)]
    seen = probed((7, images[0]))
    assert compare(images, seen, document(1, 1, 9), OURS).first_difference == ""
    images = [image(7, 0, 1), image(9, 500, 1, 1, how=FORKED)]
    assert "lacks 2 of 2" in compare(images, seen, document(1, 1), OURS).first_difference


def test_of_forks_beyond_those_that_are_named_the_number_is_enough():
    for more, is_equal in ((1, True), (0, False)):
        images = [image(7, 0, 1), *(image(9 + at, 500, 1, how=FORKED) for at in range(2))]
        told = document(1, 1, 9) | {"notes": [f"{more} more interpreters had no probe."]}
        compared = compare(images, probed((7, images[0])), told, OURS)
        assert (compared.first_difference == "") == is_equal


def test_what_comes_before_a_hook_is_not_of_who_had_the_pid_long_ago():
    """Its PID inside says nothing of that outside, which wraps around."""
    images = [
        image(2, 0, 0),
        image(7, 500, 0),
        image(8, 1_000, 0),
        image(1, 2_000, 0, space=THEIRS),
    ]
    seen = probed(*((each.pid, each) for each in images[:3]))
    seen[7] += [Seen(1_990, 1_995, 0), *probed((7, images[3]))[7]]
    compared = compare(images, seen, document(4, 5), OURS)
    assert compared.first_difference == ""
    assert compared.figures["before an image's hook began"] == 1


@pytest.mark.parametrize(("images", "found"), [(3, 1), (1, 5)])
def test_sums_that_the_document_has_otherwise_are_a_difference(images, found):
    own = [image(7, 0, 1)]
    difference = compare(own, probed((7, own[0])), document(images, found), OURS).first_difference
    assert difference.startswith("The probe has ")


@pytest.mark.parametrize(
    ("rise", "grows"),
    [
        ((0.0, 0.0, 0.0), []),
        ((0.08, 0.0, 0.0), ["memory"]),
        ((0.0, 0.4, 0.0), ["descriptors"]),
        ((0.0, 0.0, 0.5), ["CPU"]),
        ((-0.5, -0.5, -0.5), []),
    ],
)
def test_what_rises_after_the_warm_up_grows(rise, grows):
    count = 2 * FEWEST
    flat = Sample(0.0, 6e7, 9.0, 0.02)
    samples = [
        Sample(at, *(v * (1 + r * at / count) for v, r in zip(flat[1:], rise, strict=True)))
        for at in range(count)
    ]
    warm_up = [Sample(float(at - 20), 1e6, 1, 0.001) for at in range(20)]
    lines = lines_of([*warm_up, *samples])
    assert [each.what for each in lines if not each.is_flat] == grows


def test_too_few_samples_say_nothing():
    assert lines_of([Sample(float(at), 1.0 + at, 1.0, 1.0) for at in range(FEWEST)]) == []


@pytest.mark.slow
def test_half_a_minute_of_churn_holds():
    command = [sys.executable, str(HERE), "--hours", "0.005", "--seed", "3", "--pause", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
