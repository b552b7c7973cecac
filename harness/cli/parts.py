"""``gcbench compare --experiment``: the parts of a file, one comparison after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import click
from click.core import ParameterSource
from rich.console import Console

from engines.nearest import nearest
from harness.cli.exit_codes import ExitCode
from harness.cli.session import Session, checked
from harness.cli.tell import tell
from harness.experiment.experiment_file import ExperimentFile, FilePart, PartResult, PartsResult
from harness.experiment.result import ExperimentResult
from harness.experiment.store import new_name, write_json
from harness.report.again import report_command
from harness.result.result import RESULT_FILE

_OF_THE_REPORT = ("experiment", "details", "dry_run", "image_path")
"""What a part is not measured by."""

_OF_THE_WHOLE = (*_OF_THE_REPORT, "json_path", "output", "resume", "fail_on", "quiet")
"""What the command line says of a file's run, and no part by itself."""


class Compared(NamedTuple):
    """A comparison that has been run."""

    session: Session
    result: ExperimentResult


class Measure(Protocol):
    """Runs the comparison that flags describe, as an experiment of a ``name``."""

    def __call__(self, flags: dict[str, Any], name: str) -> Compared:
        """Raises ValueError for what cannot be run."""
        ...


def exit_code(results: Sequence[ExperimentResult], fail_on: str | None) -> ExitCode:
    """What comparisons come to."""
    if not all(result.is_complete for result in results):
        return ExitCode.INTERRUPTED
    if not all(any(cell.samples for cell in result.cells) for result in results):
        return ExitCode.NOT_MEASURED
    verdicts = [each.verdict for result in results for each in result.comparisons]
    return ExitCode.WORSE if fail_on and fail_on in verdicts else ExitCode.MEASURED


def say_how_to_go_on(name: str) -> None:
    """What to do after Ctrl-C."""
    words = f"interrupted, incomplete; go on with the same command and --resume {name}"
    Console(stderr=True).print(words, highlight=False, soft_wrap=True)


def compare_parts(ctx: click.Context, file: ExperimentFile, measure: Measure) -> ExitCode:
    """Run every part, as far as they go, and print the table of them all.

    Raises ValueError as `run_parts`.
    """
    json_path = checked(ctx.params["json_path"], "--json")
    ran = run_parts(ctx, file, measure)
    given = ctx.params
    tell(
        ran,
        more=report_command(given["output"], ran.name),
        details=given["details"],
        quiet=given["quiet"],
        json=json_path,
    )
    if not ran.is_complete:
        say_how_to_go_on(ran.name)
    return exit_code([part.result for part in ran.parts], ctx.params["fail_on"])


def run_parts(ctx: click.Context, file: ExperimentFile, measure: Measure) -> PartsResult:
    """Run every part, as far as they go; ``ctx`` has the flags of the command line.

    Raises ValueError for a part that cannot be run, before the first is.
    """
    of_parts = [_flags(ctx, file, part) for part in file.parts]
    output: Path = ctx.params["output"]
    for part, flags in zip(file.parts, of_parts, strict=True):
        try:
            Session(dict(flags))
        except ValueError as error:
            raise ValueError(f"{file.name}, {part.title}: {error}") from None
    resume = ctx.params["resume"]
    if resume and (not (output / resume).is_dir() or (output / resume / "plan.json").exists()):
        raise ValueError(f"--resume {resume}: no run of an experiment's file in {output}")
    name = resume or new_name(output, file.name)
    done: list[PartResult] = []
    for number, (part, flags) in enumerate(zip(file.parts, of_parts, strict=True), 1):
        own = f"{name}.{number}"
        if (output / own / "plan.json").exists():
            flags["resume"] = own
        if not ctx.params["quiet"]:
            words = f"part {number} of {len(of_parts)}: {part.title}"
            Console(stderr=True).print(words, soft_wrap=True)
        result = measure(flags, own).result
        done.append(PartResult(title=part.title, published=part.published, result=result))
        if not result.is_complete:
            break
    is_complete = len(done) == len(of_parts) and done[-1].result.is_complete
    ran = PartsResult(
        name=name,
        question=file.question,
        parts=done,
        is_complete=is_complete,
        columns=file.columns,
        note=file.note,
    )
    write_json(output / name / RESULT_FILE, ran)
    return ran


def _flags(ctx: click.Context, file: ExperimentFile, part: FilePart) -> dict[str, Any]:
    """Those of a part: the file's, its own, and before both what the command line gives."""
    asked = file.flags | part.flags
    known = {param.name: param for param in ctx.command.params}
    defaults: dict[str, Any] = {}
    for flag, value in asked.items():
        name = flag.replace("-", "_")
        if name not in known or name in _OF_THE_WHOLE:
            near = ", ".join(nearest(flag, [each for each in known if each]))
            raise ValueError(f"{file.name}, {part.title}: no flag {flag!r}; did you mean {near}?")
        is_list = isinstance(value, list) and not known[name].multiple
        defaults[name] = ",".join(map(str, value)) if is_list else value
    try:
        own = ctx.command.make_context(ctx.info_name, [], ctx.parent, default_map=defaults)
    except click.UsageError as error:
        raise ValueError(f"{file.name}, {part.title}: {error.format_message()}") from None
    given = {
        name: value
        for name, value in ctx.params.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    flags = own.params | given | {"json_path": None, "resume": ""}
    return {name: value for name, value in flags.items() if name not in _OF_THE_REPORT}
