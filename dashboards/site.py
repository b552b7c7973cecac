"""The whole site: reads results, works out each page's content, writes a folder."""

from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dashboards.content.commits import (
    Commit,
    CommitMessage,
    commits,
    known_messages,
    remote_address,
)
from dashboards.content.experiments import (
    Experiment,
    newest_first,
    read_experiments,
    without_summary,
)
from dashboards.content.news import Item, items
from dashboards.content.recent_changes import recent_changes
from dashboards.content.series import all_series
from dashboards.content.standing import all_old, standings
from dashboards.content.timelines import timelines
from dashboards.folder import replacing_folder
from dashboards.names import Names
from dashboards.writer import Content, Writer
from harness.files import writing
from harness.machine.git import GitError
from harness.tracking.asv.config import asv_results_folder
from harness.tracking.by_commit import reproduce_commands
from harness.tracking.frames import figures_frame, parameters_frame
from harness.tracking.history import History, load_history
from harness.tracking.judge_figures import judge_all
from harness.tracking.raw_trials import failures_frame, trials_frame
from harness.tracking.reruns import by_series
from harness.tracking.triage import NOTHING_SAID, Triage, load_triage

TIMELINES = 60
_MOST_COMMANDS = 20


class Built(NamedTuple):
    """What was made, and a sentence for each thing that could not be read."""

    pages: int
    sentence: str
    problems: list[str]


def build_site(
    results: Path,
    output: Path,
    *,
    repository: Path | None = None,
    commit_url: str = "",
    triage: Triage | None = None,
    rewritten: Collection[str] = (),
    notice: str = "",
    most_timelines: int = TIMELINES,
    now: datetime | None = None,
) -> Built:
    """Make the site of ``results`` in ``output``, whole or not at all.

    ``repository``: whose commits' subjects are shown; the one that holds the results if None.
    ``triage``: what is known of changes; else what stands beside asv's configuration, where that is
    found. ``rewritten``: commits that are left out beside those that the results' checkout no
    longer has in its history. ``notice``: a sentence to stand first. Raises ValueError where
    nothing can be read, StoreError where the site cannot be written.
    """
    found, experiments, root = _read(results)
    found = found.without(rewritten)
    problems = found.problems
    now = now or datetime.now(UTC)
    known = _commits(found, root, repository, commit_url, problems)
    series = all_series(found.figures, found.parameters, known)
    if triage is None:
        beside = found.config
        triage = load_triage(beside.parent / "triage.toml") if beside else NOTHING_SAID
    verdicts, events = judge_all(found.figures, by_series(found.reruns), triage, now.date())
    order = {commit.hash: place for place, commit in enumerate(known)}
    stand = standings(found.figures, verdicts, now)
    news = items(verdicts, order, is_old=all_old(stand))
    content = Content(
        commits=known,
        series=series,
        verdicts=verdicts,
        latest=recent_changes(verdicts, found.figures),
        items=_with_commands(news, repository or root, found.config),
        standings=stand,
        experiments=newest_first(experiments),
        timelines=timelines(root, most_timelines, problems),
        root=root,
        found=found,
        now=now,
        notice=notice,
        events=events,
    )
    with replacing_folder(output) as folder, writing(output):
        pages = Writer(folder, content).everything()
    return Built(pages, content.latest.sentence, problems)


def _read(results: Path) -> tuple[History, list[Experiment], Path]:
    """What `load_history` reads and the summaries beside it.

    Its refusal only where these are none too, and a folder of results has not just been made.
    """
    try:
        found, refused = load_history(results), None
    except ValueError as error:
        found = History(
            figures_frame([]), parameters_frame([]), trials_frame([]), failures_frame([]), []
        )
        refused = error
    root = asv_results_folder(results) if results.is_file() else results
    experiments = []
    if root.is_dir():
        names = Names()
        experiments = read_experiments(root, found.problems, names)
        summed_up = {each.name for each in experiments}
        experiments += without_summary(found.trials, summed_up, root, names)
    if refused and not experiments and (found.problems or not _is_empty(root)):
        raise refused
    found.problems[:] = dict.fromkeys(found.problems)  # two readers say the same of a folder
    return found, experiments, root


def _is_empty(root: Path) -> bool:
    """Whether nothing but words lies in a folder of results: somebody's first visit."""
    return root.is_dir() and not any(
        path.is_file() and path.suffix != ".md" and path.name[0] != "." for path in root.rglob("*")
    )


def _with_commands(
    found: list[Item], checkout: Path, config: Path | None
) -> list[tuple[Item, list[str]]]:
    """git is asked about the first ones only: it takes a while, and nobody works off hundreds."""
    return [
        (
            item,
            reproduce_commands(
                checkout, config, item.news.leader, [change.key[2] for change in item.changes]
            )
            if place < _MOST_COMMANDS
            else [],
        )
        for place, item in enumerate(found)
    ]


def _commits(
    found: History, root: Path, repository: Path | None, commit_url: str, problems: list[str]
) -> list[Commit]:
    hashes = [str(commit) for commit in found.figures["commit"].unique()]
    messages: dict[str, CommitMessage] = {}
    try:
        messages = known_messages(repository or root, hashes)
    except GitError as error:
        if repository:  # asked for; results that lie in no repository are nobody's fault
            problems.append(f"{error}; commits are shown without their messages")
    address = commit_url or (remote_address(repository or root) if messages else "")
    return commits(found.figures, messages, address)
