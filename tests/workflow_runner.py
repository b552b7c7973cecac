"""A job as GitHub runs it, as far as caches and conditions of steps go.

The rules are those of GitHub's docs on workflow syntax and of actions/cache v4:

- A step without ``if``, or with one that asks for no status, runs while all before it succeeded.
- A cache is found by its key and its paths; restore-keys are beginnings, the newest cache wins.
- A cache is never written again, and none is made where no path exists.
- ``actions/cache`` saves after the job, if that succeeded and its key was not found.
"""

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Step = dict[str, Any]
_ASKS_FOR_STATUS = re.compile(r"\b(success|always|failure|cancelled)\(\)")
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


class Cancelled(Exception):  # noqa: N818 - no error of the runner's
    """Raised by a step's command: somebody cancels the job, or its time is over."""


class Cache(NamedTuple):
    key: str
    paths: tuple[str, ...]
    folder: Path


class Runner:
    """Runs jobs in fresh workspaces below ``folder``; ``caches`` outlive them, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs = 0
        self.caches: list[Cache] = []

    def run(
        self, job: Mapping[str, Any], run: Callable[[Step, Path], bool], **github: object
    ) -> str:
        """The job's result. ``run`` is given each step that runs and the workspace.

        It says whether the step succeeded. ``github``: what stands in ``${{ github.NAME }}``.
        """
        self._jobs += 1
        return _Job(self, self._folder / f"job-{self._jobs}", run, github).run(job["steps"])

    def restore(self, given: Mapping[str, str], workspace: Path) -> bool:
        """Whether the key itself was found."""
        paths = tuple(given["path"].split())
        of_ours = [cache for cache in self.caches if cache.paths == paths]
        for key in (given["key"], *given.get("restore-keys", "").split()):
            exact = [cache for cache in of_ours if cache.key == key]
            found = exact or [cache for cache in of_ours if cache.key.startswith(key)]
            if found:
                shutil.copytree(found[-1].folder, workspace, dirs_exist_ok=True)
                return found[-1].key == given["key"]
        return False

    def save(self, given: Mapping[str, str], workspace: Path) -> None:
        """Keep what there is of the paths, unless a cache of this key and these paths exists."""
        paths = tuple(given["path"].split())
        is_known = any((cache.key, cache.paths) == (given["key"], paths) for cache in self.caches)
        there = [path for path in paths if (workspace / path).exists()]
        if is_known or not there:
            return
        folder = self._folder / f"cache-{len(self.caches)}"
        for path in there:
            shutil.copytree(workspace / path, folder / path)
        self.caches.append(Cache(given["key"], paths, folder))


class _Job:
    def __init__(
        self,
        runner: Runner,
        workspace: Path,
        run: Callable[[Step, Path], bool],
        github: Mapping[str, object],
    ) -> None:
        workspace.mkdir(parents=True)
        self._runner, self._workspace, self._run, self._github = runner, workspace, run, github
        self._status = "success"
        self._outcomes: dict[str, str] = {}
        self._after: list[Callable[[], None]] = []

    def run(self, steps: list[Step]) -> str:
        for step in steps:
            outcome = self._outcome(step)
            self._outcomes[step.get("id", "")] = outcome
            if self._status == "success" and outcome in ("failure", "cancelled"):
                self._status = outcome
        if self._status == "success":  # the condition of actions/cache for its post step
            for save in self._after:
                save()
        return self._status

    def _outcome(self, step: Step) -> str:
        if not self._is_due(str(step.get("if", "success()"))):
            return "skipped"
        try:
            succeeded = self._run(step, self._workspace)
        except Cancelled:
            return "cancelled"
        if not succeeded:
            return "failure"
        self._use(step.get("uses", "").partition("@")[0], self._filled_in(step.get("with", {})))
        return "success"

    def _use(self, action: str, given: dict[str, str]) -> None:
        if action == "actions/cache/save":
            self._runner.save(given, self._workspace)
        elif action in ("actions/cache", "actions/cache/restore"):
            is_exact = self._runner.restore(given, self._workspace)
            if action == "actions/cache" and not is_exact:
                self._after.append(lambda: self._runner.save(given, self._workspace))

    def _is_due(self, condition: str) -> bool:
        if not _ASKS_FOR_STATUS.search(condition):
            condition = f"success() && ({condition})"
        return self._value(_EXPRESSION.sub(r"\1", condition)) is True

    def _filled_in(self, given: Mapping[str, object]) -> dict[str, str]:
        return {
            name: _EXPRESSION.sub(lambda found: str(self._value(found[1])), str(value))
            for name, value in given.items()
        }

    def _value(self, expression: str) -> object:
        python = re.sub(r"!(?!=)", " not ", expression.replace("&&", " and ").replace("||", " or "))
        python = re.sub(r"\bsteps\.([\w-]+)\.(?:outcome|conclusion)", r"outcome('\1')", python)
        python = re.sub(r"\bgithub\.(\w+)", r"github('\1')", python)
        names: dict[str, Callable[..., object]] = {
            "always": lambda: True,
            "outcome": lambda step: self._outcomes.get(step, ""),
            "github": lambda name: self._github[name],
        }
        for status in ("success", "failure", "cancelled"):
            names[status] = lambda status=status: self._status == status
        return eval(python, {"__builtins__": {}}, names)
