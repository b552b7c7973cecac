"""What a stored file lacks to be measured again."""

import re
from typing import Any

from benchmarks.claims.document import read_document
from benchmarks.claims.ledger import ROOT
from benchmarks.claims.stored import PUBLISHED
from harness.machine.git import GitError, git

_CLEAN = re.compile(r"[0-9a-f]{40}")


def lacks(name: str) -> str:
    """In words, "" where it has its command, machine, interpreter and a commit of the history, as
    each part of an experiment has.
    """
    document = read_document(PUBLISHED / name)
    is_whole = document.get("kind") != "parts"
    measured = [document] if is_whole else [part["result"] for part in document["parts"]]
    return "; ".join(dict.fromkeys(filter(None, map(_lacks, measured))))


def _lacks(document: dict[str, Any]) -> str:
    missing = [what for what, there in _parts(document).items() if not there]
    commits = document.get("code_commits") or [document.get("code_commit", "")]
    dirty = [each.removesuffix("+dirty")[:7] for each in commits if each.endswith("+dirty")]
    wrong = [f"no {what}" for what in missing]
    wrong += [f"uncommitted changes to {each}" for each in dirty]
    wrong += [f"{each[:7]} is not in the history" for each in commits if each and not _known(each)]
    return ", ".join(wrong)


def _parts(document: dict[str, Any]) -> dict[str, bool]:
    machine = document.get("machine", {})
    return {
        "command": bool(document.get("command")),
        "machine": bool(machine.get("cpu_model")),
        "interpreter": bool(machine.get("python_build")),
        "commit": bool(document.get("code_commits") or document.get("code_commit")),
    }


def _known(commit: str) -> bool:
    commit = commit.removesuffix("+dirty")
    if not _CLEAN.fullmatch(commit):
        return False
    try:
        git(ROOT, "merge-base", "--is-ancestor", commit, "HEAD")
    except GitError:
        return False
    return True


def is_shallow() -> bool:
    """Whether this clone has only a part of the history."""
    return git(ROOT, "rev-parse", "--is-shallow-repository") == "true"
