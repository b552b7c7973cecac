"""``gcbench reproduce``: claims and stored results measured again, and what of them holds here."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console

from engines.nearest import nearest
from harness.claims.ledger import load
from harness.claims.reproduction import Answer, Question, Reproduction, answer, of_claims, of_result
from harness.claims.stored import Recorded, read_recorded, rule, shipped_rulings
from harness.cli.compare import parse, run
from harness.cli.exit_codes import ExitCode
from harness.cli.options import output_option, wait_quiet_option
from harness.cli.session import checked
from harness.files import write_json
from harness.machine.describe import describe
from harness.report.claims import ledger_rows, print_answers
from harness.report.lists import list_table
from harness.report.terminal import make_console

EXAMPLES = """
\b
Examples:
  gcbench reproduce
      the claims of four vLLM threads, and the ruling on each
  gcbench reproduce 26369-gen0-each-step
      one of them again: published, stored and new figure; does it hold here?
  gcbench reproduce results/published/main-job-py3.11.json
      the verdicts of a comparison again, whoever has published it
  gcbench reproduce mine.toml --rounds 3 --fail-on not-held
      claims of your own (docs/claims.md); exit status 1 if one does not hold
"""

_COMMAND = ("gcbench", "compare")


@click.command(epilog=EXAMPLES)
@click.argument("what", nargs=-1, metavar="[CLAIM|FILE]...")
@click.option("--rounds", type=click.IntRange(min=1), help="Instead of the command's own.")
@click.option(
    "--fail-on", type=click.Choice(["not-held"]), help="Exit 1 if a conclusion does not hold."
)
@click.option("--json", "json_path", metavar="FILE|-", help="Write the answers there.")
@output_option("Where raw trials are kept.")
@click.option("--quiet", is_flag=True, help="No progress, no tables.")
@wait_quiet_option
@click.pass_context
def reproduce(
    ctx: click.Context,
    /,
    *,
    what: tuple[str, ...],
    rounds: int | None,
    fail_on: str | None,
    json_path: str | None,
    output: Path,
    quiet: bool,
    wait_quiet: str,
    anyway: bool,
) -> None:
    """Measure claims or stored results again, and say which of their conclusions hold here.

    CLAIM is a row of docs/claims.md; without any they are listed. FILE is what gcbench compare
    --json has written, or a .toml file with claims of your own.
    """
    checked(json_path, "--json")
    shows_tables = not quiet and json_path != "-"
    if what:
        questions = [question for each in what for question in _questions(each)]
        more = ["--output", str(output), *["--quiet"] * quiet]
        more += [] if rounds is None else ["--rounds", str(rounds)]
        more += ["--wait-quiet", wait_quiet] if wait_quiet else []
        more += ["--anyway"] * anyway
        answers = _ask(ctx, questions, more, quiet)
    else:
        ledger, stored = load(), shipped_rulings().rulings
        questions = of_claims(ledger, ledger.claims, stored)
        answers = []
        if shows_tables:
            list_table(ledger_rows(ledger, stored), make_console())
    is_complete = len(answers) == len(questions)
    if json_path:
        answered = [each.question for each in answers]
        rest = [Answer(question=each, now=None) for each in questions if each not in answered]
        write_json(
            json_path,
            Reproduction(machine=describe(), answers=[*answers, *rest], is_complete=is_complete),
        )
    if answers and shows_tables:
        print_answers(answers, make_console())
    if not what:
        return
    if not is_complete:
        words = f"interrupted: {len(answers)} of {len(questions)} conclusions were measured"
        Console(stderr=True).print(words, highlight=False, soft_wrap=True)
        ctx.exit(ExitCode.INTERRUPTED)
    ctx.exit(_exit_code(answers, fail_on))


def _ask(
    ctx: click.Context, questions: Sequence[Question], more: Sequence[str], quiet: bool
) -> list[Answer]:
    """Run each command once, with ``more`` words behind its own; fewer answers if interrupted.

    Raises ValueError for a command that is not one of gcbench compare, before anything runs.
    """
    by_command: dict[str, list[Question]] = {}
    for question in questions:
        by_command.setdefault(question.command, []).append(question)
    for command in filter(None, by_command):
        _parsed(ctx, command)
    answers: list[Answer] = []
    for number, (command, asked) in enumerate(by_command.items(), 1):
        if not quiet and len(by_command) > 1 and command:
            words = f"command {number} of {len(by_command)}: {command}"
            Console(stderr=True).print(words, soft_wrap=True)
        try:
            results = run(ctx, [*_words(command), *more]) if command else {}
        except ValueError as error:
            answers += [Answer(question=each, now=None, reason=str(error)) for each in asked]
            continue
        if not all(result.is_complete for result in results.values()):
            break
        answers += [answer(question, results) for question in asked]
    return answers


def _questions(what: str) -> list[Question]:
    """What a name on the command line stands for. Raises ValueError or StoreError."""
    path = Path(what)
    if path.suffix.lower() == ".toml":
        ledger = load(path)
        return of_claims(ledger, ledger.claims, rule(ledger, path.parent).rulings)
    if path.suffix.lower() == ".json":
        recorded = read_recorded(path)
        _check_start(recorded.command, str(path))
        try:
            questions = of_result(recorded.command, recorded.results)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if questions := questions or _of_those_who_quote(recorded):
            return questions
        raise ValueError(
            f"{path}: no comparison in it has settled anything, and no claim rests on it; "
            "nothing to reproduce"
        )
    ledger = load()
    if found := [claim for claim in ledger.claims if claim.id == what]:
        return of_claims(ledger, found, shipped_rulings().rulings)
    near = nearest(what, ids := [claim.id for claim in ledger.claims])
    meant = f"; did you mean {', '.join(near)}?" if len(near) < len(ids) else ""
    raise ValueError(
        f"no claim {what!r}{meant} (`gcbench reproduce` lists them; a result ends in .json and a "
        "ledger of your own in .toml)"
    )


def _of_those_who_quote(recorded: Recorded) -> list[Question]:
    """Claims that are settled by what this command measures: exact figures have no verdict."""
    ledger, words = load(), shlex.split(recorded.command)
    quoted = [
        name
        for name, each in ledger.measurements.items()
        if (wanted := shlex.split(each.command)) == words[: len(wanted)]
    ]
    claims = [claim for claim in ledger.claims if claim.measurement in quoted]
    return of_claims(ledger, claims, shipped_rulings().rulings)


def _check_start(command: str, where: str) -> None:
    try:
        begins = tuple(shlex.split(command)[:2])
    except ValueError:  # a quotation mark without another
        begins = ()
    if begins != _COMMAND:
        raise ValueError(
            f"{where}: its command is `{command}`; only those of gcbench compare can be run again"
        )


def _words(command: str) -> list[str]:
    return shlex.split(command)[len(_COMMAND) :]


def _parsed(ctx: click.Context, command: str) -> None:
    """Raises ValueError for a command that gcbench compare does not take."""
    _check_start(command, "a claim")
    try:
        parse(ctx, _words(command))
    except click.UsageError as error:
        raise ValueError(f"`{command}`: {error.format_message()}") from None


def _exit_code(answers: Sequence[Answer], fail_on: str | None) -> ExitCode:
    if fail_on and "not held" in _settled(answers):
        return ExitCode.WORSE
    return ExitCode.NOT_MEASURED if None in _settled(answers) else ExitCode.MEASURED


def _settled(answers: Iterable[Answer]) -> set[str | None]:
    return {each.now.settled if each.now else None for each in answers}
