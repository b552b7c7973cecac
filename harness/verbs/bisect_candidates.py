"""Where the candidates of a bisection come from, and how one is counted."""

from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast

import msgspec
from packaging.version import Version

from engines.protocol import EngineClass, Releases, TreeError
from engines.registry import ENGINES
from harness.axes import Cell
from harness.experiment.grid import traits
from harness.experiment.outcomes import Trials
from harness.experiment.plan import counting_plan
from harness.explain.largest_changes import LargestChange, largest_changes
from harness.explain.result import Side
from harness.explain.sides import BY_FUNCTION, read_side
from harness.metrics import Metric
from harness.not_measured import NotMeasured
from harness.tracking.bisect.bisection import CountedFigure
from harness.tracking.bisect.commits import CommitHistory, commits_between, tree_of
from harness.tracking.bisect.counting import read_figure
from harness.tracking.bisect.result import Candidate
from harness.tracking.gate.trees import take_tree
from harness.trial.spec import Mode, TrialResult
from harness.verbs.release_sources import LaidOut, OwnReleases, Say
from harness.verbs.session import Session


class Source(Protocol):
    """What there is between GOOD and BAD."""

    @property
    def candidates(self) -> list[Candidate]:
        """From GOOD to BAD those that may differ from the one before."""
        ...

    @property
    def kind(self) -> Literal["commit", "release"]:
        """What they are."""
        ...

    @property
    def num_commits(self) -> int:
        """How many there are after GOOD, whether they may differ or not."""
        ...

    def tree_of(self, candidate: Candidate) -> str:
        """Equal where the same files are measured."""
        ...

    def lay_out(self, candidate: Candidate, code: Path, say: Say) -> LaidOut:
        """Make it ready to be run; trees lie in the folder ``code``.

        Raises ValueError where it cannot be had.
        """
        ...


class Commits(NamedTuple):
    """Commits of a repository, of which one package is measured."""

    repo: Path
    package: str
    found: CommitHistory

    @classmethod
    def between(cls, repo: Path, good: str, bad: str, package: str) -> "Commits":
        """Raises ValueError as `commits_between`."""
        return cls(repo, package, commits_between(repo, good, bad, package))

    @property
    def candidates(self) -> list[Candidate]:
        """From GOOD to BAD those that change the package."""
        return self.found.candidates

    @property
    def kind(self) -> Literal["commit", "release"]:
        """Commits."""
        return "commit"

    @property
    def num_commits(self) -> int:
        """After GOOD up to BAD, along first parents."""
        return self.found.num_commits

    def tree_of(self, candidate: Candidate) -> str:
        """The hash of the package's files."""
        return tree_of(self.found.root, candidate.id, self.package)

    def lay_out(self, candidate: Candidate, code: Path, say: Say) -> LaidOut:
        """The folder under which the package of a commit lies from now on."""
        tree = take_tree(self.repo, candidate.id, self.package, code / candidate.label)
        return LaidOut(tree.folder, tree.label, tree.folder)


class ReleaseCandidates(NamedTuple):
    """Releases that an engine has."""

    of: Releases
    candidates: list[Candidate]

    @classmethod
    def between(cls, of: Releases, good: str, bad: str) -> "ReleaseCandidates":
        """Raises ValueError for what is no release, and where GOOD is not the older one."""
        known = of.known_versions()
        first, last = (of.check_version(each, known) for each in (good, bad))
        if Version(first) >= Version(last):
            raise ValueError(f"GOOD {good} is no older release than BAD {bad}; give the older one")
        between = of.within(f"{first}..{last}", known)
        return cls(of, [Candidate(id=version) for version in between])

    @property
    def kind(self) -> Literal["commit", "release"]:
        """Releases."""
        return "release"

    @property
    def num_commits(self) -> int:
        """Releases after GOOD."""
        return len(self.candidates) - 1

    def tree_of(self, candidate: Candidate) -> str:
        """The version: each has files of its own."""
        return candidate.id

    def lay_out(self, candidate: Candidate, code: Path, say: Say) -> LaidOut:
        """The version, whose environment is there from now on."""
        return OwnReleases(self.of).lay_out(candidate.id, say)


class Counter:
    """Counts a metric, in one trial for each candidate, all of them kept beside ``name``."""

    def __init__(
        self, session: Session, name: str, metric: Metric, source: Source, say: Say
    ) -> None:
        self._session, self._name, self._metric = session, name, metric
        self._source, self._say = source, say
        self._engine: EngineClass = ENGINES.load(session.cell.engine)
        self._code = (session.runner.output / name / "code").resolve()
        # As those count whose figures are to be found again: `gate` commits, `releases` releases.
        self._every = traits(session.cell).trace_every if source.kind == "commit" else 0
        self._expected: TrialResult | None = None
        self._laid_out: dict[str, LaidOut] = {}
        self._sides: dict[str, Side | NotMeasured] = {}
        self.notes: list[str] = []

    def count(self, candidate: Candidate, left: int) -> CountedFigure:
        """Its figure, or why there is none. Raises KeyboardInterrupt."""
        more = f"about {left} more after it" if left > 0 else "the last one, if it runs"
        self._say(
            f"measuring {' '.join((candidate.label, candidate.subject[:40])).strip()}; {more}"
        )
        try:
            laid_out = self._source.lay_out(candidate, self._code, self._say)
            self._engine.launch("", laid_out.release)
        except TreeError as error:
            return CountedFigure(None, error.why)
        except ValueError as error:
            return CountedFigure(None, str(error))
        self._laid_out[self._source.tree_of(candidate)] = laid_out
        trials, cell = self._run(candidate, laid_out, cast(Mode, self._metric.mode))
        self._expected = self._expected or trials.counted_in(self._metric.mode, cell)
        figure = read_figure(trials, cell, self._metric, self._expected)
        if figure.value is None:
            return CountedFigure(None, figure.reason.replace(f"{laid_out.release}/", ""))
        self._say(f"  {self._metric.name}: {figure.value:,.6g}")
        return figure

    def functions(self, before: Candidate, after: Candidate) -> list[LargestChange]:
        """Those by which two candidates differ most, in the part of an engine's work that the
        metric is of; none where steps cannot be counted.

        Both have been counted. Raises KeyboardInterrupt.
        """
        older, newer = self._side(before), self._side(after)
        if isinstance(older, Side) and isinstance(newer, Side):
            changes = largest_changes(older, newer)
            return [each for each in changes if each.when == self._metric.when]
        return []

    def _side(self, candidate: Candidate) -> Side | NotMeasured:
        tree = self._source.tree_of(candidate)
        if tree not in self._sides:
            self._say(f"counting {candidate.label} by function")
            self._run(candidate, self._laid_out[tree], BY_FUNCTION)
        return self._sides[tree]

    def _run(self, candidate: Candidate, laid_out: LaidOut, mode: Mode) -> tuple[Trials, Cell]:
        runner = self._session.runner
        cell = msgspec.structs.replace(self._session.cell, release=laid_out.release)
        name = "-".join([self._name, candidate.label, *([mode] * (mode != self._metric.mode))])
        hashes = runner.schedule_hashes
        plan = counting_plan(name, [cell], [mode], hashes, runner.seed, self._every)
        ran = self._session.run(plan)
        if ran.is_interrupted:
            raise KeyboardInterrupt
        self.notes += [note for note in ran.notes if note not in self.notes]
        trials = Trials(ran.plan, ran.outcomes)
        if mode == BY_FUNCTION:
            side = read_side(trials, cell, candidate.label, laid_out.root)
            self._sides[self._source.tree_of(candidate)] = side
        return trials, cell
