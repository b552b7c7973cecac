"""Signals in nights of real asv: each commit is kept whole, once, by whichever night comes next."""

import signal
import time
from random import Random

from attempts import Tried
from commands import status_of
from nightly_project import Project
from sent import BY_SIGNAL, send_after, shown
from surroundings import Surroundings
from targets import LIMIT_SECONDS, begin


class Nights:
    """Nights of real asv over a project that grows by a commit for each attempt."""

    def __init__(self, common: Surroundings) -> None:
        folder = common.folder / "nights"
        folder.mkdir()
        self.project = Project(folder)
        self.project.commit()
        assert self.project.night()[0] in (0, 3)  # makes asv's environment
        self.project.commit()
        began = time.monotonic()
        assert self.project.night()[0] in (0, 3)
        self._seconds = time.monotonic() - began

    def attempt(self, random: Random, name: str, share: float, place: Surroundings) -> Tried:
        """A signal in a night, and the night after it."""
        project, found = self.project, list[str]()
        for _ in range(random.randint(1, 2)):
            project.commit()
        logged, before = len(project.logged()), project.kept()
        moment = share * self._seconds
        process = begin(project.command(), place, project.folder, self._environment(place))
        was_sent = send_after(process, name, moment, place)
        status = status_of(process, LIMIT_SECONDS)
        may = BY_SIGNAL[name if was_sent else ""] | {0, 3}
        said = (place.folder / "err").read_text() + (place.folder / "out").read_text()
        found += [f"it ended with {status}: {said[-300:]}"] if status not in may else []
        found += ["a traceback"] if "Traceback" in said else []
        if status != -signal.SIGKILL:
            found += place.left(temporary=False)
        now = project.kept()
        if not before <= now:
            found.append("what was kept is lost")
        if again := before & set(project.logged()[logged:]):
            found.append(f"measured once more: {again}")
        logged = len(project.logged())
        process = begin(project.command(), place, project.folder, self._environment(place))
        if (status := status_of(process, LIMIT_SECONDS)) not in (0, 3):
            found.append(f"the next night ended with {status}")
        if again := now & set(project.logged()[logged:]):
            found.append(f"the next night measured once more: {again}")
        if project.kept() != set(range(len(project.hashes))):
            found.append("a commit has no results")
        found += place.left(temporary=False)
        what = f"{name} after {moment:.2f} s to: gcbench nightly"
        return Tried(("nightly", shown(name)), what, found)

    def _environment(self, place: Surroundings) -> dict[str, str]:
        own = self.project.environment
        return {name: own[name] for name in ("HOME", "TOY_LOG", "PYTHONPATH")}
