"""A repository in whose settings every program is a trap that leaves a mark when it is run."""

import os
import pty
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from scratch_repository import ENVIRONMENT, Repository

SIGNATURES = {"openpgp": "PGP SIGNATURE", "x509": "SIGNED MESSAGE", "ssh": "SSH SIGNATURE"}
SUBJECTS = tuple(f"signed by {kind}" for kind in SIGNATURES)
FILTERED = ("clean", "process", "smudge", "included", "of_worktree", "of_info")
DIFFED = ("command", "textconv")


class Trap(NamedTuple):
    """``settings`` name its program as {}; plain ``git CONTROL`` runs it."""

    name: str
    settings: tuple[tuple[str, str], ...]
    control: str
    given: str = ""
    on_terminal: bool = False


def _one(name: str, key: str, control: str, given: str = "", value: str = "{}") -> Trap:
    return Trap(name, ((key, value),), control, given)


def _remote(name: str, url: str, *settings: tuple[str, str]) -> Trap:
    """One that a partial clone asks for what it lacks."""
    key = f"remote.{name}"
    promisor = ((f"{key}.url", url), (f"{key}.promisor", "true"), *settings)
    return Trap(name, promisor, "cat-file -p :lost/lacking.txt")


_ASK = "protocol=https\nhost=example.invalid\n\n"
TRAPS = (
    _one("gpg", "gpg.program", "log"),
    _one("gpgsm", "gpg.x509.program", "log"),
    _one("ssh-keygen", "gpg.ssh.program", "log"),
    _one("default-key", "gpg.ssh.defaultKeyCommand", "-c gpg.format=ssh tag -s -m words a-tag"),
    _one("clean", "filter.clean.clean", "status"),
    _one("process", "filter.process.process", "status"),
    _one("smudge", "filter.smudge.smudge", "checkout-index --prefix=out/ engines/smudge.py"),
    _one("included", "filter.included.clean", "status"),
    _one("of-worktree", "filter.of_worktree.clean", "status"),
    _one("of-info", "filter.of_info.clean", "status"),
    _one("external", "diff.external", "diff -- engines/smudge.py"),
    _one("command", "diff.command.command", "diff -- engines/command.py"),
    _one("textconv", "diff.textconv.textconv", "log -p"),
    Trap("pager", (("core.pager", "{}"),), "log", on_terminal=True),
    Trap("pager-of-show", (("pager.show", "{}"),), "show --no-patch", on_terminal=True),
    _one("hooks", "core.hooksPath", "read-tree HEAD"),
    _one("hook", "gcbench.unused", "-c core.hooksPath=.git/hooks read-tree HEAD"),
    _one("fsmonitor", "core.fsmonitor", "status"),
    _one("submodule", "gcbench.unused", "status -- sub"),
    _one("alias", "alias.trap", "trap", value="!{}"),
    _one("editor", "core.editor", "config --edit"),
    _one("credentials", "credential.helper", "credential fill", _ASK),
    _one("askpass", "core.askPass", "-c credential.helper= credential fill", _ASK),
    _one("trailer", "trailer.trap.cmd", "interpret-trailers --trailer trap=1", "words\n"),
    _one("alternates", "core.alternateRefsCommand", "rev-list --alternate-refs"),
    _remote("ssh", "ssh://example.invalid/it", ("core.sshCommand", "{}")),
    _remote("proxy", "git://example.invalid/it", ("core.gitProxy", "{}")),
    _remote("ext", "ext::{}", ("protocol.ext.allow", "always")),
    _remote("uploadpack", "file://{}", ("remote.uploadpack.uploadpack", "{}")),
)
_ELSEWHERE = {"included": "included", "of-worktree": "config.worktree"}
"""Settings that lie in another file of .git than its config."""
_CONVERSE = ("process", "ssh", "proxy", "ext", "uploadpack")
"""Programs whose answer git waits for before it ends what it says."""


class HostileRepository:
    """A checkout at ``root``, whose last three commits are `SUBJECTS`; all traps are set.

    It has the packages ``engines`` and ``vllm``, changes that are not committed, and lacks an
    object that no package needs.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "hostile"
        self._programs, self._marks = folder / "programs", folder / "marks"
        self._marks.mkdir(parents=True)
        repository = Repository(self.root)
        self._commit(repository)
        self._add_submodule(repository)
        self._sign(repository)
        for name in (*FILTERED, *DIFFED):  # what is not changed needs neither filter nor diff
            (self.root / "engines" / f"{name}.py").write_text("2\n")
        self._lose(repository, "lost/lacking.txt")
        self._set_traps(repository)

    def copy_to(self, folder: Path) -> Path:
        """Another checkout, whose files git has not looked at yet; marks of any before are gone."""
        for mark in self._marks.iterdir():
            mark.unlink()
        return Path(shutil.copytree(self.root, folder, symlinks=True))

    def sprung(self) -> set[str]:
        """The traps that were run."""
        return {mark.name for mark in self._marks.iterdir()}

    def _commit(self, repository: Repository) -> None:
        for name in (*FILTERED, *DIFFED, "plain"):
            repository.write(**{f"engines__{name}": "1\n"})
        for name in ("lost/lacking.txt", "vllm/__init__.py"):
            (self.root / name).parent.mkdir()
            (self.root / name).write_text(f"{name}\n")
        (self.root / ".gitattributes").write_text(
            "".join(
                [f"{name}.py filter={name}\n" for name in FILTERED if name != "of_info"]
                + [f"{name}.py diff={name}\n" for name in DIFFED]
            )
        )
        (self.root / ".git" / "info" / "attributes").write_text("of_info.py filter=of_info\n")
        repository.commit("first")

    def _add_submodule(self, repository: Repository) -> None:
        inner = Repository(self.root / "sub")
        commit = inner.commit("inner", inner="1")
        inner.git("config", "core.fsmonitor", str(self._program("submodule")))
        (self.root / ".gitmodules").write_text(
            '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
        )
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
        repository.commit("a submodule")

    def _sign(self, repository: Repository) -> None:
        for kind, words in SIGNATURES.items():
            commit = repository.commit(f"signed by {kind}")
            header, _, message = repository.git("cat-file", "commit", commit).partition("\n\n")
            signature = f"gpgsig -----BEGIN {words}-----\n \n none\n -----END {words}-----"
            (self.root / ".git" / "signed").write_text(f"{header}\n{signature}\n\n{message}\n")
            signed = repository.git("hash-object", "-t", "commit", "-w", ".git/signed")
            repository.git("reset", "--soft", signed)

    def _lose(self, repository: Repository, path: str) -> None:
        blob = repository.git("rev-parse", f":{path}")
        (self.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    def _set_traps(self, repository: Repository) -> None:
        git = self.root / ".git"
        other = Repository(self._programs.parent / "other")
        other.commit("other")
        (git / "objects" / "info" / "alternates").write_text(f"{other.root / '.git' / 'objects'}\n")
        signers = git / "signers"
        signers.touch()
        settings = {
            "core.repositoryformatversion": "1",
            "extensions.worktreeConfig": "true",
            "extensions.partialClone": "ssh",
            "log.showSignature": "true",
            "gpg.ssh.allowedSignersFile": str(signers),
            "include.path": "included",
            "trailer.trap.key": "trap",
        }
        for key, value in settings.items():
            repository.git("config", "--file", str(git / "config"), key, value)
        for trap in TRAPS:
            program = self._program(trap.name)
            file = git / _ELSEWHERE.get(trap.name, "config")
            for key, value in trap.settings:
                # Without arguments git takes a folder of hooks for one.
                program_or_folder = program.parent if key == "core.hooksPath" else program
                written = value.replace("{}", str(program_or_folder))
                repository.git("config", "--file", str(file), key, written)
        shutil.copy(self._program("hook"), git / "hooks" / "post-index-change")

    def _program(self, name: str) -> Path:
        """An executable that leaves a mark and fails."""
        file = "post-index-change" if name == "hooks" else "program"
        path = self._programs / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        # Who does not listen to the end may have git killed by SIGPIPE before the next trap.
        listens = "" if name in _CONVERSE else "cat > /dev/null\n"
        path.write_text(f"#!/bin/sh\n: > '{self._marks / name}'\n{listens}exit 1\n")
        path.chmod(0o755)
        return path


def run_control(trap: Trap, root: Path) -> None:
    """Plain git, as anybody might call it, with what makes it run the trap."""
    terminal, stdout = pty.openpty()
    try:
        subprocess.run(
            ["git", "-C", str(root), *trap.control.split(" ")],
            env=os.environ | ENVIRONMENT | {"TERM": "xterm"},
            input=trap.given.encode(),
            stdout=stdout if trap.on_terminal else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    finally:
        os.close(stdout)
        os.close(terminal)
