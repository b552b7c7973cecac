"""The releases of vLLM that a request names, and their environments made ready."""

from collections.abc import Sequence
from itertools import chain

from engines.vllm.releases import ReleaseError, is_range, known_versions, prepare_release, within
from harness.report.release_lines import in_order
from harness.verbs.caller import Caller


def wanted_releases(texts: Sequence[str], *, last_patches: bool) -> list[str]:
    """The releases that are asked for; with a range among them, oldest first.

    Raises ReleaseError where a range is none, holds none, or the index cannot be read.
    """
    if not any(map(is_range, texts)):
        if last_patches:
            raise ReleaseError("--last-patches: only of a range, as in 0.10.2..0.12.0, or of all")
        return list(texts)
    known = known_versions()
    ranges = (
        within(text, known, last_patches=last_patches) if is_range(text) else [text]
        for text in texts
    )
    return in_order(list(chain.from_iterable(ranges)))


def prepare_releases(wanted: Sequence[str], caller: Caller) -> tuple[list[str], dict[str, str]]:
    """The releases that can be run, and why each of the others cannot."""
    prepared: list[str] = []
    failures: dict[str, str] = {}
    with caller.working("preparing") as say:
        for release in wanted:
            try:
                prepare_release(release, say)
                prepared.append(release)
            except ReleaseError as error:
                failures[release] = str(error)
                caller.complain(f"left out {release}: {error}")
    return prepared, failures
