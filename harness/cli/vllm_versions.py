"""The releases of vLLM that a command line names, and their environments made ready."""

from collections.abc import Sequence
from itertools import chain

from rich.console import Console

from engines.vllm.releases import ReleaseError, is_range, known_versions, prepare_release, within
from harness.report.release_lines import in_order


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


def prepare_releases(wanted: Sequence[str], *, quiet: bool) -> tuple[list[str], dict[str, str]]:
    """The releases that can be run, and why each of the others cannot."""
    console = Console(stderr=True, highlight=False)
    prepared: list[str] = []
    failures: dict[str, str] = {}
    with console.status("preparing", spinner="dots") as status:

        def say(words: str) -> None:
            status.update(words)
            if not quiet and not console.is_terminal:
                console.print(words)

        for release in wanted:
            try:
                prepare_release(release, say)
                prepared.append(release)
            except ReleaseError as error:
                failures[release] = str(error)
                console.print(f"gcbench: left out {release}: {error}", style="red", markup=False)
    return prepared, failures
