"""Commits as the pages show them: hash, date, author, subject and, where known, an address."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dashboards.names import Names
from harness.machine.git import GitError, git

_HASH = re.compile(r"[0-9a-f]{7,64}")
_AT_ONCE = 500
_FORGE = re.compile(
    r"(?:https?://|ssh://)?(?:[^@/]+@)?(github\.com|gitlab\.com|codeberg\.org)[:/]"
    r"([\w.-]+(?:/[\w.-]+?)+?)(?:\.git)?/?"
)


class CommitMessage(NamedTuple):
    """Who wrote a commit, and the first line of what they said of it."""

    author: str
    subject: str


class Commit(NamedTuple):
    """``author``, ``subject`` and ``url`` are empty where nobody knows them."""

    hash: str
    date: str
    author: str
    subject: str
    url: str
    page: str

    @property
    def short(self) -> str:
        """What people say of it."""
        return self.hash[:8]


def commits(
    figures: pd.DataFrame, messages: Mapping[str, CommitMessage], address: str
) -> list[Commit]:
    """All commits of these figures, by their dates and, where these are equal, by when measured."""
    first = figures.groupby("commit", observed=True)[["date", "measured"]].min()
    names, found = Names(), list[Commit]()
    for commit, date in first.sort_values(["date", "measured"], kind="stable")["date"].items():
        name = str(commit)
        message = messages.get(name, CommitMessage("", ""))
        found.append(
            Commit(
                hash=name,
                date=f"{date:%Y-%m-%d}",
                author=message.author,
                subject=message.subject,
                url=address + name if address and _HASH.fullmatch(name) else "",
                page=names.of(name[:12]),
            )
        )
    return found


def known_messages(repository: Path, hashes: list[str]) -> dict[str, CommitMessage]:
    """Authors and first lines of these commits, of those that the repository has.

    Raises GitError.
    """
    asked = [commit for commit in hashes if _HASH.fullmatch(commit)]
    found: dict[str, CommitMessage] = {}
    for start in range(0, len(asked), _AT_ONCE):
        some = asked[start : start + _AT_ONCE]
        said = git(
            repository,
            "log",
            "--no-walk=unsorted",
            "--ignore-missing",
            "-z",
            "--format=%H%n%an%n%s",
            *some,
            "--",
        )
        for record in said.encode("utf-8", "replace").decode().split("\0"):
            commit, _, rest = record.strip("\n").partition("\n")
            author, _, subject = rest.partition("\n")
            if commit:
                found[commit] = CommitMessage(author.strip(), subject.strip())
    return found


def remote_address(repository: Path) -> str:
    """Where a commit of this repository can be looked at, up to its hash; "" if not known."""
    try:
        origin = git(repository, "remote", "get-url", "origin")
    except GitError:
        return ""
    if not (known := _FORGE.fullmatch(origin)):
        return ""
    host, project = known.groups()
    return f"https://{host}/{project}/{'-/' if host == 'gitlab.com' else ''}commit/"


def checked_address(text: str) -> str:
    """An address given by a user. Raises ValueError where a browser could run it."""
    if not re.match(r"https?://[^\s\"'<>]+$", text):
        raise ValueError(
            f"--commit-url {text!r} is no address; give it as https://HOST/PROJECT/commit/"
        )
    return text
