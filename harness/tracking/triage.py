"""What a team has said about changes, in a file in git, and what is left to look at.

    [[acknowledged]]                 # seen, being worked on
    series = "serving.*"             # a glob; `metric` likewise; one of the two at least
    commit = "1c3260f8"              # beginning of the first commit after; not for ignored
    until = 2026-12-31               # the last day; must for ignored
    reason = "issue 12"

``[[expected]]`` is meant to be so, ``[[ignored]]`` is any change of these series. ``[[reset]]``
has a level begin at a commit.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import date
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from harness.tracking.detect.change import Change
from harness.tracking.detect.series import Series
from workloads.files.toml_file import read_toml_table

Status = Literal["open", "acknowledged", "expected", "ignored"]
_FEWEST_DIGITS = 7


class _Glob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    series: str = ""
    metric: str = ""

    def covers(self, series: str, metric: str) -> bool:
        """Whether both globs, where given, match."""
        return fnmatchcase(series, self.series or "*") and fnmatchcase(metric, self.metric or "*")


class Known(_Glob, frozen=True, kw_only=True):
    """A change that has been seen, or was meant."""

    commit: str
    until: date | None = None


class Ignored(_Glob, frozen=True, kw_only=True):
    """Series whose changes nobody wants to hear of for now."""

    until: date


class Reset(_Glob, frozen=True, kw_only=True):
    """A commit at which a new level begins, unsaid."""

    commit: str


class Triage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says, in its order."""

    acknowledged: list[Known] = []
    expected: list[Known] = []
    ignored: list[Ignored] = []
    reset: list[Reset] = []

    def resets(self, series: Series) -> list[str]:
        """Commits for `detect`'s ``resets``."""
        return [each.commit for each in self.reset if each.covers(series.name, series.metric)]


NOTHING_SAID = Triage()


class Judged(NamedTuple):
    """A change, and what has been said of it. ``note``: what has run out, else empty."""

    change: Change
    status: Status
    reason: str
    note: str = ""


def load_triage(path: Path) -> Triage:
    """Read the file; no file says nothing. Raises ValueError with a sentence for one that is wrong.

    Each entry needs a reason and a series or a metric, and a commit at least seven digits.
    """
    try:
        triage = msgspec.convert(read_toml_table(path), Triage, builtin_types=(date,))
    except FileNotFoundError:
        return NOTHING_SAID
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise ValueError(f"{path} cannot be read: {why}") from error
    except (ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"{path} is none: {said}; docs/history.md shows a triage file") from error
    for kind in ("acknowledged", "expected", "ignored", "reset"):
        for number, entry in enumerate(getattr(triage, kind), start=1):
            if wrong := _wrong(entry):
                raise ValueError(f"{path}: {kind} number {number} {wrong}")
    return triage


def apply(changes: Sequence[Change], triage: Triage, today: date) -> list[Judged]:
    """Each change with what is said of it today; expected before acknowledged before ignored.

    A commit is met by any that may be the first after, or that was said to be when the change was
    found. An entry is good to the end of ``until``.
    """
    return [_judge(change, triage, today) for change in changes]


def acknowledgement(commit: str, series: Iterable[tuple[str, str]]) -> str:
    """Entries of a triage file on changes of these (series, metric) with a commit."""
    globs = dict.fromkeys(
        f"metric = {_toml(escape(metric))}" if metric else f"series = {_toml(escape(name))}"
        for name, metric in series
    )
    return "\n".join(
        f"[[acknowledged]]\n{glob}\ncommit = {_toml(commit[:12])}\n"
        'reason = "who looks at it, and where"\n'
        for glob in globs
    )


def _toml(text: str) -> str:
    """A text as a basic string of TOML, which is one of JSON but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _judge(change: Change, triage: Triage, today: date) -> Judged:
    run_out = ""
    said: list[tuple[Status, Sequence[Known | Ignored]]] = [
        ("expected", triage.expected),
        ("acknowledged", triage.acknowledged),
        ("ignored", triage.ignored),
    ]
    for status, entries in said:
        for entry in entries:
            if not entry.covers(change.series, change.metric):
                continue
            if isinstance(entry, Known) and not _is_of(change, entry.commit):
                continue
            if entry.until is None or today <= entry.until:
                return Judged(change, status, entry.reason)
            run_out = run_out or f"{status} until {entry.until}: {entry.reason}"
    return Judged(change, "open", "", run_out)


def _is_of(change: Change, commit: str) -> bool:
    return any(each.startswith(commit.lower()) for each in (*change.plausible, *change.named))


def _wrong(entry: Known | Ignored | Reset) -> str:
    if not entry.reason.strip():
        return "has no reason; say why, for who reads it later"
    if not (entry.series or entry.metric):
        return 'names neither series nor metric; series = "*" is all of them'
    if not isinstance(entry, Ignored) and len(entry.commit) < _FEWEST_DIGITS:
        return f"has commit {entry.commit!r}; give {_FEWEST_DIGITS} digits of its hash or more"
    return ""
