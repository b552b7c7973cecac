"""git, for reading: it runs no program that a repository's configuration names.

Such a configuration may name programs for signatures, filters, diffs, hooks and much else, and an
unpacked archive may bring one. So git gets another configuration, with only the settings of
`_KEPT`, beside the repository's own objects and references. It fetches nothing either.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from harness.files import StoreError
from harness.machine.scratch import scratch_folder
from workloads.files.regular_file import read_regular

# Within a git hook these point at the hook's repository, whatever -C says.
_OTHER_REPOSITORY = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
    }
)
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

# How objects and files are stored, which files count, and what names such as @{upstream} mean.
# None of these names a program.
_KEPT = re.compile(
    r"core\.(repositoryformatversion|filemode|ignorecase|precomposeunicode|symlinks|autocrlf|eol"
    r"|checkstat|trustctime|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone)"
    r"|extensions\.(objectformat|compatobjectformat|refstorage)"
    r"|branch\..*\.(remote|merge|pushremote)|remote\..*\.(url|fetch|push)|url\..*\.insteadof"
    r"|remote\.pushdefault|push\.default",
    re.DOTALL,
)
_PARTIAL = re.compile(r"remote\..*\.promisor\ntrue|extensions\.partialclone\n.*", re.DOTALL)
_PATIENCE_SECONDS = 120.0
"""A git that has not answered by then is asked once more: one hung for ten minutes, and the trial
that asked was lost with it."""
_SHARED = ("info", "logs", "objects", "packed-refs", "refs", "reftable", "shallow")
"""What git reads of a repository, less configuration and hooks, which are not there then."""


class GitError(ValueError):
    """git's refusal, in one sentence."""


class Git(NamedTuple):
    """git in a repository that `reading` has found. ``root``: the folder in which it is called."""

    root: Path
    environment: Mapping[str, str]
    is_partial: bool
    patience_seconds: float

    def __call__(self, *arguments: str, environment: Mapping[str, str] = {}) -> str:
        """As `git`."""
        try:
            seen = dict(self.environment) | dict(environment)
            return _run(self.root, arguments, seen, self.patience_seconds)
        except GitError as error:
            if not self.is_partial:
                raise
            raise GitError(
                f"{error}; this is a partial clone, and gcbench does not fetch what it lacks: "
                "clone it without --filter"
            ) from None

    def changed_files(self, *paths: str, untracked: bool = True) -> list[str]:
        """As `changed_files`."""
        listed = self(
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--ignore-submodules=dirty",
            f"--untracked-files={'all' if untracked else 'no'}",
            "--",
            *paths,
        )
        return [entry[3:] for entry in listed.split("\0") if entry]


@contextmanager
def reading(root: Path, patience_seconds: float = _PATIENCE_SECONDS) -> Iterator[Git]:
    """git for several questions: the repository and its settings are looked for once.

    A question that git has not answered after so long is put once more. Raises GitError where
    there is no repository.
    """
    repository = _find(root, patience_seconds)
    with _harmless(repository) as environment:
        is_partial = any(map(_PARTIAL.fullmatch, repository.settings))
        yield Git(root, environment, is_partial, patience_seconds)


def git(root: Path, *arguments: str, environment: Mapping[str, str] = {}) -> str:
    """What git prints, less line ends around it. Raises GitError where it fails or is not there.

    Bytes that are no UTF-8, as file names may have them, come as surrogates.
    """
    with reading(root) as ask:
        return ask(*arguments, environment=environment)


def changed_files(root: Path, *paths: str, untracked: bool = True) -> list[str]:
    """Files that differ from the last commit, in these paths or anywhere. Raises GitError.

    Of a submodule it counts which commit is checked out: to see more, git would run in there.
    """
    with reading(root) as ask:
        return ask.changed_files(*paths, untracked=untracked)


def described(folder: Path) -> str:
    """What git calls a checkout, by its tags, with "-dirty" where files of git's have changed.

    "" unless ``folder`` is the top of one: one around it says nothing of it.
    """
    try:
        if git(folder, "rev-parse", "--show-cdup"):
            return ""
        name = git(folder, "describe", "--tags", "--always")
        return name + ("-dirty" if changed_files(folder, untracked=False) else "")
    except GitError:
        return ""


class _Repository(NamedTuple):
    """``folder``: one work tree's; ``settings``: as `git config --list -z` gives them."""

    folder: Path
    work_tree: Path | None
    settings: list[str]


def _find(root: Path, patience_seconds: float) -> _Repository:
    """The repository around ``root``. git runs nothing for that, and refuses another user's."""
    asking = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    asking |= _QUIET
    where = ("--is-inside-work-tree", "--show-cdup", "--absolute-git-dir")

    def ask(*arguments: str) -> str:
        return _run(root, arguments, asking, patience_seconds)

    inside, up, *rest = ask("rev-parse", *where).split("\n")
    settings = ask("config", "--list", "-z").split("\0")
    if inside == "true":
        return _Repository(Path("\n".join(rest)), (root.resolve() / up).resolve(), settings)
    folder = ask("rev-parse", "--absolute-git-dir")
    return _Repository(Path(folder), None, settings)


@contextmanager
def _harmless(repository: _Repository) -> Iterator[dict[str, str]]:
    """An environment in which git sees this repository, and no settings but `_KEPT`."""
    seen = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    seen |= _QUIET | _NO_SETTINGS
    if repository.work_tree:
        seen["GIT_WORK_TREE"] = str(repository.work_tree)
    else:
        seen["GIT_IMPLICIT_WORK_TREE"] = "0"  # else git takes the folder it is called in for one
    kept = [each for each in repository.settings if _KEPT.fullmatch(each.partition("\n")[0])]
    # A split index would be written into the repository, even one of the caller's own.
    lines = map(_line, [*kept, "core.splitindex\nfalse"])
    with ExitStack() as made:
        try:
            shown = made.enter_context(scratch_folder())
            (shown / "config").write_bytes("".join(lines).encode(errors="surrogateescape"))
            for name in _SHARED:
                (shown / name).symlink_to(_common(repository.folder) / name)
        except StoreError as error:
            raise GitError(f"git cannot be run here: {error}") from None
        except OSError as error:
            raise GitError(f"git cannot be run here: {error.strerror}") from None
        yield seen | {"GIT_DIR": str(repository.folder), "GIT_COMMON_DIR": str(shown)}


def _common(folder: Path) -> Path:
    """What all work trees of a repository share, from the folder of one."""
    named = folder / "commondir"
    return folder / os.fsdecode(read_regular(named)).rstrip("\n") if named.exists() else folder


def _line(setting: str) -> str:
    """A setting, as ``git config --list -z`` gives it, as a file has it."""
    key, has_value, value = setting.partition("\n")
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    header = f"{section} {_quoted(subsection)}" if subsection else section
    return f"[{header}]\n{name} = {_quoted(value) if has_value else 'true'}\n"


def _quoted(text: str) -> str:
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(character, written)
    return f'"{text}"'


def _run(
    root: Path, arguments: Sequence[str], environment: Mapping[str, str], patience_seconds: float
) -> str:
    for _ in range(2):
        try:
            answer = subprocess.run(
                ["git", "-C", str(root), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="surrogateescape",
                timeout=patience_seconds,
            )
        except subprocess.TimeoutExpired:
            continue
        except FileNotFoundError:
            raise GitError("git is not installed here") from None
        except OSError as error:
            raise GitError(f"git cannot be run here: {error.strerror}") from None
        if answer.returncode:
            why = _reason(answer.returncode, answer.stderr)
            raise GitError(f"git {arguments[0]} failed in {root}: {why}")
        return answer.stdout.strip("\n")
    raise GitError(
        f"git {arguments[0]} did not answer within {patience_seconds:.0f} s in {root}, twice"
    )


def _reason(status: int, stderr: str) -> str:
    if status < 0:
        return f"it was killed by {signal.Signals(-status).name}"
    # Advice comes after the reason, and warnings before it.
    said = stderr.encode(errors="surrogateescape").decode(errors="replace").strip().splitlines()
    grave = [line for word in ("fatal: ", "error: ") for line in said if line.startswith(word)]
    return (grave or said[-1:] or ["it said nothing"])[0]
