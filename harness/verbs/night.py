"""A night from its beginning to its end, whatever goes wrong on the way."""

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, ClassVar

from harness.axes import Value
from harness.experiment.store import INCOMPLETE_FILE
from harness.files import StoreError, write_json, write_whole
from harness.render.markdown import report_markdown
from harness.report.nightly import describe_nightly
from harness.report.series_words import counts, triaged
from harness.result.result import RESULT_FILE
from harness.statistics.paired_ratio import FEWEST_PAIRS
from harness.tracking.asv.checkout import branches, repository
from harness.tracking.asv.config import asv_results_folder, unknown_keys
from harness.tracking.detect.search import PER_NIGHT
from harness.tracking.nightly.alerts import Alerts, Where, alerts_of
from harness.tracking.nightly.commits import wanted_commits
from harness.tracking.nightly.hardware import KnownMachine, tell_asv, this_machine
from harness.tracking.nightly.lock import only_run
from harness.tracking.nightly.measured_commits import measured_commits
from harness.tracking.nightly.night import (
    Looked,
    MeasuredAgain,
    NightPlace,
    look_over,
    measure_commit,
    measure_suspicions,
    take_up,
)
from harness.tracking.nightly.result import MeasuredCommit, NightlyResult
from harness.tracking.nightly.run_asv import Asv
from harness.tracking.triage import load_triage
from harness.verbs.caller import Caller, CountWatch
from harness.verbs.request import NO_AXES, Flag, VerbRequest

_UNFINISHED = b"This night has not come to its end; the next run goes on with it\n"
INTERRUPTED = "The night was interrupted; what is left to measure waits for the next run."


class NightRequest(VerbRequest, frozen=True, kw_only=True):
    """``config``: an asv.conf.json. What is left out is as its flag says."""

    decided: ClassVar[Mapping[str, list[Value]]] = NO_AXES

    config: Path = Path("asv.conf.json")
    output: Annotated[
        Path,
        Flag("The page, the summary and what is being measured.", section="Output", metavar="DIR"),
    ] = Path("results/nightly")
    commits: Annotated[
        str,
        Flag(
            "These commits, in git's notation.  [default: those since the newest measured one]",
            section="Options",
            is_main=True,
            metavar="RANGE",
        ),
    ] = ""
    bench: Annotated[
        str,
        Flag("These benchmarks only, as asv's.", section="Options", is_main=True, metavar="REGEX"),
    ] = ""
    machine: Annotated[
        str,
        Flag(
            "What this machine is called in the results.  [default: its host name]",
            section="Options",
            is_main=True,
            metavar="NAME",
        ),
    ] = ""
    triage: Annotated[
        Path | None,
        Flag(
            "What is known of changes (docs/history.md).  [default: triage.toml beside CONFIG]",
            section="Options",
            is_main=True,
            metavar="FILE",
        ),
    ] = None
    reruns: Annotated[
        int,
        Flag(
            "Pairs of commits that are measured again at most: is it a change, and whose.",
            is_main=True,
            least=0,
        ),
    ] = PER_NIGHT
    rounds: Annotated[
        int, Flag("Turns that each of two such commits gets.", is_main=True, least=FEWEST_PAIRS)
    ] = 5
    results: Annotated[
        Path | None,
        Flag(
            "What the dashboard shows.  [default: CONFIG's results_dir]",
            section="Output",
            is_main=True,
        ),
    ] = None


class Night:
    """One run. ``missing`` has a sentence for each thing that could not be done."""

    def __init__(self, request: NightRequest, caller: Caller) -> None:
        """Raises ValueError for what cannot be run."""
        self._asked, self._caller = request, caller
        self._config, self._output = request.config.absolute(), request.output.absolute()
        for flag, path in (("--triage", request.triage), ("--results", request.results)):
            if path is not None and not path.exists():
                raise ValueError(f"{flag} {path}: does not exist; name one that does")
        self._triage = load_triage(request.triage or self._config.parent / "triage.toml")
        try:
            re.compile(request.bench)
        except re.error as error:
            raise ValueError(f"--bench {request.bench}: no regular expression: {error}") from error
        staging = self._output / "staging"
        self.place = NightPlace(
            config=self._config,
            results=asv_results_folder(self._config),
            root=repository(self._config),
            branches=branches(self._config),
            staging=staging / "commits",
            reruns=staging / "again",
        )
        self._missing, self._notes = list[str](), unknown_keys(self._config)
        self._tried, self._done = list[MeasuredCommit](), 0
        self._is_interrupted = False
        self._looked_at: datetime | None = None

    def look_over(self) -> Looked:
        """Judge what is there. Raises ValueError where there is nothing."""
        self._looked_at = datetime.now(UTC)
        return look_over(self.place, self._triage, self._looked_at.date())

    def run(self) -> NightlyResult:
        """Measure, judge and write it down. Raises BusyError where another run is at work."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        with only_run(self._output):
            mark = self._output / INCOMPLETE_FILE
            with suppress(StoreError):  # a full disk leaves the judgement, which says so
                write_whole(mark, _UNFINISHED)
            machine = this_machine(self.place.results, self._asked.machine)
            asv = Asv(self._config, self._output, machine.name)
            looked: Looked | None = None
            self._is_interrupted = True
            with suppress(KeyboardInterrupt):
                self._measure(asv, machine)
                looked = self._measure_again(asv, self._look())
                self._is_interrupted = False
            if self._is_interrupted:
                self._missing.append(INTERRUPTED)
                # Now: the next interrupt may leave no time to judge what is there.
                self._keep(self._result(machine, started, None, ""))
                looked = self._look()
            page = self._dashboard(looked)
            result = self._result(machine, started, looked, page)
            self._keep(result)
            if not self._is_interrupted:
                mark.unlink(missing_ok=True)
        return result

    def _result(
        self, machine: KnownMachine, started: str, looked: Looked | None, page: str
    ) -> NightlyResult:
        verdicts = looked.verdicts.values() if looked else []
        told = self._tell(looked)
        return NightlyResult(
            name=f"night-{started[:10]}",
            asv_machine=machine.name,
            measured=self._tried,
            alerts=told.alerts,
            suspicious=told.suspicious,
            verdicts=counts(verdicts),
            triaged=triaged(verdicts),
            unsettled=sum(each.is_unsettled for each in verdicts),
            reruns=self._done,
            dashboard=page,
            missing=self._missing,
            notes=self._notes,
            problems=looked.found.problems if looked else [],
            hardware=machine.hardware,
            command=self._caller.command,
            started=started,
            is_complete=not self._is_interrupted,
        )

    def _measure(self, asv: Asv, machine: KnownMachine) -> None:
        try:
            take_up(self.place)
            known = measured_commits(self.place.results, machine.name)
        except StoreError as error:
            self._missing.append(f"{error}. Nothing is measured before that is mended.")
            return
        self._notes += [note for note in (machine.note, *known.notes) if note]
        commits = wanted_commits(
            self.place.root, self.place.branches, self._asked.commits, known.commits, known.lost
        )
        try:
            tell_asv(machine)
            with self._caller.counting("measuring", len(commits)) as bar:
                for commit in commits:
                    bar.say(f"measuring {commit[:10]}")
                    self._tried.append(measure_commit(asv, self.place, commit, self._asked.bench))
                    bar.advance(f"measured {commit[:10]}")
                    tell_of(bar, self._tried[-1])
        except StoreError as error:
            self._missing.append(f"{error}. What is left to measure waits for the next run.")

    def _look(self) -> Looked | None:
        try:
            with self._caller.working("looking for changes"):
                return self.look_over()
        except ValueError as error:
            self._missing.append(str(error))
            return None

    def _measure_again(self, asv: Asv, looked: Looked | None) -> Looked | None:
        """What there is to see after the re-runs.

        What one pair says decides which is next: is there a change, and then, whose.
        """
        tried = list[tuple[str, str]]()
        while looked:
            again = self._measure_pair(asv, looked, tried)
            self._missing += again.missing
            tried += again.tried
            self._done += again.done
            if again.done:
                looked = self._look()
            if not again.tried:
                if again.left:
                    self._notes.append(f"Waiting for a re-run (--reruns N): {again.left} more.")
                break
        return looked

    def _measure_pair(
        self, asv: Asv, looked: Looked, tried: list[tuple[str, str]]
    ) -> MeasuredAgain:
        """One, or none where this night has had its share."""
        try:
            with self._caller.counting("measuring again", 1) as bar:
                return measure_suspicions(
                    asv,
                    self.place,
                    looked,
                    most=int(len(tried) < self._asked.reruns),
                    rounds=self._asked.rounds,
                    but=tried,
                    on_turn=lambda total: bar.advance("measuring again", total),
                )
        except StoreError as error:
            self._missing.append(f"{error}. Suspicions are measured again by the next run.")
            return MeasuredAgain(0, [], 0, [])

    def _tell(self, looked: Looked | None) -> Alerts:
        if looked is None:
            return Alerts([], [], [])
        self._notes += looked.notes
        where = Where(self.place.results, self.place.root, self._config)
        told = alerts_of(looked.verdicts, looked.found.figures, where)
        self._notes += told.notes
        return told

    def _dashboard(self, looked: Looked | None) -> str:
        """Where the page is, "" where it could not be made."""
        from dashboards.site import build_site

        for left in self._output.glob(".site.*"):  # of a build that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            with self._caller.working("writing the page"):
                build_site(
                    self._asked.results or self._config,
                    self._output / "site",
                    repository=self.place.root,
                    triage=self._triage,
                    rewritten=looked.found.rewritten if looked else (),
                    notice=f"Incomplete: {INTERRUPTED}" if self._is_interrupted else "",
                    now=self._looked_at,
                )
        except (ValueError, StoreError) as error:
            self._missing.append(f"no dashboard: {error}")
            return ""
        return str(self._output / "site" / "index.html")

    def _keep(self, result: NightlyResult) -> None:
        try:
            write_json(self._output / RESULT_FILE, result)
            report, picture = describe_nightly(result), self._output / "night.png"
            if report.pictures:
                write_whole(picture, report.pictures[0].draw(".png"))
            else:
                picture.unlink(missing_ok=True)  # of the night before
            markdown = report_markdown(report, picture.name if report.pictures else "")
            write_whole(self._output / "night.md", markdown.encode())
        except StoreError as error:
            self._missing.append(str(error))


def tell_of(bar: CountWatch, commit: MeasuredCommit) -> None:
    """A commit has been tried."""
    short = f"{commit.commit[:10]} {commit.subject}"
    if commit.reason:
        bar.tell(f"not measured: {short}: {commit.reason}", is_bad=True)
    else:
        bar.tell(f"measured {short} in {commit.seconds:.0f} s")
