"""The parts of an experiment's file, one comparison after the other."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from harness.experiment.experiment_file import ExperimentFile, FilePart, PartResult, PartsResult
from harness.experiment.store import new_name
from harness.result.result import keep_result
from harness.verbs.caller import Caller
from harness.verbs.compare import CompareRequest, compare_cells
from harness.verbs.request import made
from harness.verbs.session import Session

_OF_THE_WHOLE = ("output", "resume")
"""What no part says by itself."""


def compare_parts(file: ExperimentFile, given: Mapping[str, Any], caller: Caller) -> PartsResult:
    """Run every part, as far as they go; what is ``given``, by name, stands before the file's.

    Raises ValueError for a part that cannot be run, before the first is.
    """
    requests = part_requests(file, given)
    for part, request in zip(file.parts, requests, strict=True):
        try:
            Session(request, caller)
        except ValueError as error:
            raise ValueError(f"{file.name}, {part.title}: {error}") from None
    output, resume = requests[0].output, str(given.get("resume", ""))
    if resume and (not (output / resume).is_dir() or (output / resume / "plan.json").exists()):
        raise ValueError(f"--resume {resume}: no run of an experiment's file in {output}")
    name = resume or new_name(output, file.name)
    done: list[PartResult] = []
    for number, (part, request) in enumerate(zip(file.parts, requests, strict=True), 1):
        own = f"{name}.{number}"
        is_begun = (output / own / "plan.json").exists()
        caller.say(f"part {number} of {len(requests)}: {part.title}")
        result = compare_cells(replace(request, name=own, resume=own if is_begun else ""), caller)
        done.append(PartResult(title=part.title, published=part.published, result=result))
        if not result.is_complete:
            break
    ran = PartsResult(
        name=name,
        question=file.question,
        parts=done,
        is_complete=len(done) == len(requests) and done[-1].result.is_complete,
        columns=file.columns,
        note=file.note,
    )
    keep_result(output, ran)
    return ran


def part_requests(file: ExperimentFile, given: Mapping[str, Any]) -> list[CompareRequest]:
    """What each part asks for. Raises ValueError for a part that cannot be."""
    return [_request(file, part, given) for part in file.parts]


def _request(file: ExperimentFile, part: FilePart, given: Mapping[str, Any]) -> CompareRequest:
    asked = {flag.replace("-", "_"): each for flag, each in (file.flags | part.flags).items()}
    try:
        if own := next(filter(asked.get, _OF_THE_WHOLE), ""):
            raise ValueError(f"{own!r} is of the whole run; give it on the command line")
        of_parts = {name: each for name, each in given.items() if name != "resume"}
        return made(CompareRequest, asked | of_parts)
    except ValueError as error:
        raise ValueError(f"{file.name}, {part.title}: {error}") from None
