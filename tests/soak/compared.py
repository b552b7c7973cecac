"""What the hooks have written against what the probe has, image by image and to the digit."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import lil_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from truth import FORKED, RECORD, TO_BE_KILLED

MORE_NOT_PROBED = re.compile(r"([\d,]+) more interpreters had no probe")


class Seen(NamedTuple):
    """A collection: two moments on CLOCK_MONOTONIC in nanoseconds, and its generation."""

    begin: int
    end: int
    generation: int


class Image:
    """As its own hook has it. ``found``: which of its collections the probe has, too."""

    def __init__(self, pid: int, began: int, namespace: int, how: int) -> None:
        self.pid, self.began, self.namespace = pid, began, namespace
        self.is_fork, self.is_to_be_killed = how == FORKED, how == TO_BE_KILLED
        self.collections: list[Seen] = []
        self.found = 0
        self.more: list[Seen] = []
        """What the probe has of it besides."""

    def __str__(self) -> str:
        how = "fork" if self.is_fork else "interpreter"
        return f"the {how} with PID {self.pid} that began at {self.began}"


class Compared(NamedTuple):
    """``first_difference``: a sentence, "" where there is none. ``figures`` by what they count."""

    first_difference: str
    figures: dict[str, int]


def images_in(path: Path) -> list[Image]:
    """In the order in which they began."""
    records = list(RECORD.iter_unpack(path.read_bytes()))
    found = {
        (image, pid): Image(pid, began, namespace, how)
        for image, pid, began, namespace, how in records
        if how < 0
    }
    for image, pid, begin, end, generation in records:
        if generation >= 0:
            found[image, pid].collections.append(Seen(begin, end, generation))
    return sorted(found.values(), key=lambda each: each.began)


def compare(
    images: list[Image], by_pid: dict[int, list[Seen]], document: dict[str, Any], own_namespace: int
) -> Compared:
    """``by_pid``: the probe's collections in time, by PID; ``document``: what its `--json` has.

    The probe measures inside the hook, so a collection of its is within the hook's of the same.
    """
    left = {pid: sorted(each) for pid, each in by_pid.items()}
    for image in images:
        if image.namespace == own_namespace:
            _find(image, left.get(image.pid, []))
    _find_inside([each for each in images if each.namespace != own_namespace], left)
    early = _give_the_rest(images, left, own_namespace)
    unwatched = _unwatched(images, document)
    figures = _figures(images, document, unwatched, early)
    problems = [*_differences(images, unwatched), *_totals(figures)]
    return Compared(problems[0] if problems else "", figures)


def _find(image: Image, left: list[Seen]) -> None:
    """Take its collections from those of its PID that are left, none of which overlap."""
    begins = np.array([each.begin for each in left], np.int64)
    places = np.searchsorted(begins, [own.begin for own in image.collections])
    taken = {
        int(at)
        for at, own in zip(places, image.collections, strict=True)
        if at < len(left) and _is_within(left[at], own)
    }
    image.found = len(taken)
    left[:] = [each for at, each in enumerate(left) if at not in taken]


def _find_inside(images: list[Image], left: dict[int, list[Seen]]) -> None:
    """Of those in other namespaces, which do not know their PID outside: by their moments.

    Several have one PID where they had ended before it was known, and any may be held up between
    its hook and the probe. So as many are found as can be at once.
    """
    owns = [(own, image) for image in images for own in image.collections]
    rest = sorted((seen, pid) for pid, each in left.items() for seen in each)
    begins = np.array([seen.begin for seen, _ in rest], np.int64)
    fits = lil_array((len(owns), max(1, len(rest))), dtype=np.int8)
    for row, (own, _) in enumerate(owns):
        first, last = np.searchsorted(begins, [own.begin, own.end])
        for at in range(first, last):
            fits[row, at] = _is_within(rest[at][0], own)
    if owns:
        for row, at in enumerate(maximum_bipartite_matching(fits.tocsr(), "column").tolist()):
            if at >= 0:
                seen, pid = rest[at]
                left[pid].remove(seen)
                owns[row][1].found += 1


def _is_within(seen: Seen, own: Seen) -> bool:
    return own.begin <= seen.begin and seen.end <= own.end and seen.generation == own.generation


def _give_the_rest(
    images: list[Image], left: dict[int, list[Seen]], own_namespace: int
) -> Counter[int]:
    """To the image that had the PID then; how many were before its hook, by their PID.

    A job has ended before the next begins, so no image but the first, which begins them, runs when
    an interpreter of another PID does. Those in other namespaces may have any of these PIDs.
    """
    early = Counter[int]()
    own = [each for each in images if each.namespace == own_namespace]
    starts = [each for each in own if not each.is_fork]
    moments = [each.began for each in starts]
    begins: dict[int, list[Image]] = {}
    for image in own:
        begins.setdefault(image.pid, []).append(image)
    for pid, each in left.items():
        for seen in each:
            earlier = [image for image in begins.get(pid, []) if image.began <= seen.begin]
            later = [image for image in begins.get(pid, []) if image.began > seen.begin]
            if earlier and earlier[-1] is not images[0]:
                among = slice(
                    bisect_right(moments, earlier[-1].began), bisect_left(moments, seen.begin)
                )
                if any(start.pid != pid for start in starts[among]):
                    earlier = []
            # An exec's next image begins before its hook does; the one before has ended by then.
            is_after_all = earlier and seen.begin > (earlier[-1].collections or [seen])[-1].begin
            if not earlier or (later and not later[0].is_fork and is_after_all):
                early[pid] += 1
            else:
                earlier[-1].more.append(seen)
    return early


def _unwatched(images: list[Image], document: dict[str, Any]) -> list[Image]:
    """Forks that had no ring, as the probe says, by their PID or, of many, by their number."""
    by_pid = {each["pid"] for each in document["not_probed"]}
    lacking = [each for each in images if each.is_fork and each.collections and not each.found]
    named = [each for each in lacking if each.pid in by_pid]
    counted = [found for note in document["notes"] if (found := MORE_NOT_PROBED.match(note))]
    more = int(counted[0][1].replace(",", "")) if counted else 0
    return lacking if len(lacking) - len(named) <= more else named


def _differences(images: list[Image], unwatched: list[Image]) -> Iterator[str]:
    for each in images:
        missing, more = len(each.collections) - each.found, len(each.more)
        if missing and each not in unwatched:
            yield f"Of {each} the probe lacks {missing} of {len(each.collections)} collections."
        # It was killed when the probe had written its last one and the hook had not.
        if more > each.is_to_be_killed:
            yield f"Of {each} the probe has {more} collections more than its hook."


def _figures(
    images: list[Image], document: dict[str, Any], unwatched: list[Image], early: Counter[int]
) -> dict[str, int]:
    processes = document["processes"]
    return {
        "images by their hooks": len(images),
        "of these forks that collected nothing, so had no ring": sum(
            each.is_fork and not each.collections for each in images
        ),
        "of these forks that had no descriptor for a ring, as the probe says": len(unwatched),
        "images by the probe": sum(each["images"] for each in processes),
        "collections by the hooks": sum(len(each.collections) for each in images),
        "of these in forks that had no ring": sum(len(each.collections) for each in unwatched),
        "before an image's hook began": early.total(),
        "in a killed process, before its hook could write": sum(
            len(each.more) for each in images if each.is_to_be_killed
        ),
        "collections by the probe": sum(
            generation["collections"] for each in processes for generation in each["generations"]
        ),
    }


def _totals(figures: dict[str, int]) -> Iterator[str]:
    images, idle, unwatched, images_found, own, lacking, early, killed, found = figures.values()
    if images - idle - unwatched != images_found:
        yield f"The probe has {images_found} images where {images - idle - unwatched} had a ring."
    if own - lacking + early + killed != found:
        yield f"The probe has {found} collections where {own - lacking + early + killed} were."
