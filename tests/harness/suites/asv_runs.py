"""Runs the real asv in a project of a test's own, with this interpreter as its environment."""

import os
import subprocess
import sys
from pathlib import Path

_QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_SOMEBODY = {
    f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


class Project:
    """A git checkout with an asv.conf.json; nothing of it is left outside its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, **_QUIET, **_SOMEBODY, "HOME": str(folder.parent)}
        folder.mkdir(exist_ok=True)
        self.git("init", "--initial-branch", "main")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        return self._run("git", *arguments).stdout.strip()

    def commit(self) -> str:
        """Commit all there is; the commit's hash."""
        self.git("add", "--all")
        self.git("commit", "--allow-empty", "--message", "a commit")
        return self.git("rev-parse", "HEAD")

    def asv(self, *arguments: str, status: int = 0, **environment: str) -> str:
        """What asv prints, both streams; it must end with ``status``."""
        done = self._run(sys.executable, "-m", "asv", *arguments, check=False, **environment)
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        return said

    def measure(self, commit: str, *arguments: str, status: int = 0, **environment: str) -> str:
        """Run all benchmarks for a commit in this interpreter, and keep the result."""
        return self.asv(
            "run",
            "--python=same",
            "--set-commit-hash",
            commit,
            "--record-samples",
            "--show-stderr",
            *arguments,
            status=status,
            **environment,
        )

    def _run(
        self, *command: str, check: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment | environment,
            capture_output=True,
            text=True,
            check=check,
        )
