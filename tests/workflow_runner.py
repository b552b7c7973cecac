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
_NAMED = re.compile(r"\b(?:github|inputs|steps)(?:\.[\w-]+)+")


def filled_in(text: str, known: Mapping[str, object]) -> str:
    """A text with the values of its expressions, of what is ``known`` as ``github.sha``."""
    return _EXPRESSION.sub(lambda found: str(value_of(found[1], known)), text)


def value_of(expression: str, known: Mapping[str, object]) -> object:
    """An expression's value; what is not known is empty, as it is to GitHub."""
    python = re.sub(r"!(?!=)", " not ", expression.replace("&&", " and ").replace("||", " or "))
    python = _NAMED.sub(lambda found: f"known.get('{found[0]}', '')", python)
    names = {**known, "known": known, "format": lambda text, *values: text.format(*values)}
    return eval(python, {"__builtins__": {}}, names)


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
        self, job: Mapping[str, Any], run: Callable[[Step, Path], bool], known: Mapping[str, object]
    ) -> str:
        """The job's result. ``run`` is given each step that runs and the workspace.

        It says whether the step succeeded. ``known``: as `filled_in`.
        """
        self._jobs += 1
        return _Job(self, self._folder / f"job-{self._jobs}", run, known).run(job["steps"])

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
        known: Mapping[str, object],
    ) -> None:
        workspace.mkdir(parents=True)
        self._runner, self._workspace, self._run, self._known = runner, workspace, run, known
        self._status = "success"
        self._outcomes: dict[str, str] = {}
        self._after: list[Callable[[], None]] = []

    def run(self, steps: list[Step]) -> str:
        for step in steps:
            outcome = self._outcome(step)
            for name in ("outcome", "conclusion"):
                self._outcomes[f"steps.{step.get('id', '')}.{name}"] = outcome
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
        return bool(value_of(_EXPRESSION.sub(r"\1", condition), self._context()))

    def _filled_in(self, given: Mapping[str, object]) -> dict[str, str]:
        return {name: filled_in(str(value), self._context()) for name, value in given.items()}

    def _context(self) -> dict[str, object]:
        statuses = {
            status: lambda status=status: self._status == status
            for status in ("success", "failure", "cancelled")
        }
        return {**self._known, **self._outcomes, **statuses, "always": lambda: True}
