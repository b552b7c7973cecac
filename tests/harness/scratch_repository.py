"""A git repository of a test's own, and a look at everything in it."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import time

import pytest

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def leave_git_alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """No configuration but the test's own, and no repository above a folder."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder))


class Repository:
    """A checkout at ``root``, made if nothing is there; `commit` writes files, commits all."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not root.exists():
            root.mkdir(parents=True)
            self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str, given: str | None = None) -> str:
        """What git prints; ``given`` is what it reads."""
        done = subprocess.run(  # a commit does not look whether there is something to tidy
            ["git", "-C", str(self.root), "-c", "maintenance.auto=false", *arguments],
            env=os.environ | ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
            input=given,
        )
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        """Files by path, in which "__" stands for "/"; each ends in ".py"."""
        for name, content in files.items():
            path = self.root / _path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def commit(self, subject: str = "change", **files: str) -> str:
        self.write(**files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def line(self, commits: Sequence[tuple[str, Mapping[str, str]]]) -> list[str]:
        """As `commit` for each subject and its files, on ``main``, but all at once."""
        stream, when = list[str](), f"A <a@example.org> {int(time())} +0000"
        for number, (subject, files) in enumerate(commits, start=1):
            stream += [f"commit refs/heads/main\nmark :{number}\ncommitter {when}", _data(subject)]
            stream += ["from refs/heads/main^0"] if number == 1 else []
            for name, text in files.items():
                stream.append(f"M 644 inline {_path(name)}\n{_data(text)}")
        marks = self.root / ".git" / "marks"
        self.git(
            "fast-import", "--quiet", f"--export-marks={marks}", given="\n".join(stream) + "\n"
        )
        self.git("reset", "--quiet", "--hard", "main")
        by_mark = dict(each.split() for each in marks.read_text().splitlines())
        marks.unlink()
        return [by_mark[f":{number}"] for number in range(1, len(commits) + 1)]

    def state(self) -> dict[str, str]:
        """Every file, git's own included, by hash; and what git says of itself."""
        files = {
            str(path.relative_to(self.root)): str(path.readlink())
            if path.is_symlink()
            else sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }
        asked = (("worktree", "list"), ("rev-parse", "HEAD"), ("stash", "list"), ("branch", "-a"))
        return files | {" ".join(words): self.git(*words) for words in asked}


def _path(name: str) -> str:
    return name.replace("__", "/") + ".py"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def contents(folder: str) -> dict[str, str]:
    """Every file under a folder by its path, as text; a link as "-> TARGET"."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}"
        if path.is_symlink()
        else path.read_text()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_symlink() or path.is_file()
    }
