"""What asv's results say was measured on a machine; a file that is none is put aside."""

from pathlib import Path
from typing import NamedTuple

from harness.files import StoreError, set_aside
from harness.tracking.asv.result_files import NOT_RESULTS, read_asv_result
from harness.tracking.folders import json_files


class MeasuredSoFar(NamedTuple):
    """``lost``: beginnings of the hashes whose files could not be read, on this night or before."""

    commits: set[str]
    lost: set[str]
    notes: list[str]


def measured_commits(results: Path, machine: str) -> MeasuredSoFar:
    """The commits of a machine; those whose files cannot be read are to be measured again."""
    found = MeasuredSoFar(set(), set(), [])
    folder = results / machine
    aside = {path.name.partition("-")[0] for path in folder.glob("*.json.unreadable*")}
    for path in json_files(folder, found.notes) if folder.is_dir() else []:
        if path.name in NOT_RESULTS:
            continue
        try:
            found.commits.add(read_asv_result(path).commit_hash)
        except StoreError as problem:
            found.lost.add(path.name.partition("-")[0])
            found.notes.append(
                f"{problem}; put aside as {set_aside(path).name}, its commit is measured again"
            )
    whole = {commit for commit in found.commits if not commit.startswith(tuple(found.lost))}
    # What a night before has put aside and could not measure is still lost.
    still = {each for each in aside if not any(commit.startswith(each) for commit in whole)}
    return found._replace(commits=whole, lost=found.lost | still)
