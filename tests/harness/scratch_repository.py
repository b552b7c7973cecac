"""A git repository of a test's own, and a look at everything in it."""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


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

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def write(self, **files: str) -> None:
        """Files by path, in which "__" stands for "/"; each ends in ".py"."""
        for name, content in files.items():
            path = self.root / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def commit(self, subject: str = "change", **files: str) -> str:
        self.write(**files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.git("rev-parse", "HEAD")

    def state(self) -> dict[str, str]:
        """Every file, git's own included, by hash; and what git says of itself."""
        files = {
            str(path.relative_to(self.root)): str(path.readlink()) if path.is_symlink()
            else sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }  # fmt: skip
        asked = (("worktree", "list"), ("rev-parse", "HEAD"), ("stash", "list"), ("branch", "-a"))
        return files | {" ".join(words): self.git(*words) for words in asked}


def contents(folder: str) -> dict[str, str]:
    """Every file under a folder by its path, as text; a link as "-> TARGET"."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink()
        else path.read_text()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_symlink() or path.is_file()
    }  # fmt: skip
