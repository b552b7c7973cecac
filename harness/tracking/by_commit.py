"""The news of all series by the commit that made it, and the commands that show it once more."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from engines.registry import ENGINES
from harness.tracking.detect.change import Change
from harness.tracking.gate.trees import find_commit
from harness.tracking.triage import Judged
from harness.tracking.verdict import Key, SeriesVerdict

_SHOWN_IN_A_COMMAND = 4


class CommitNews(NamedTuple):
    """All that one commit changed; ``leader``: the change that says best which commit it was."""

    leader: Change
    members: list[tuple[SeriesVerdict, Judged]]


def by_commit(verdicts: Mapping[Key, SeriesVerdict]) -> list[CommitNews]:
    """The news of all series, that of one commit together.

    A timing says within a few commits where it changed. Of series whose ranges meet, the one that
    is surest says which commit it was; an exact metric always is.
    """
    news = [(each, judged) for each in verdicts.values() for judged in each.news]
    news.sort(
        key=lambda each: (
            each[0].series.kind != "exact",
            len(each[1].change.plausible),
            each[1].change.place,
        )
    )
    groups = list[CommitNews]()
    for each, judged in news:
        plausible = set(judged.change.plausible)
        near = [of for of in groups if plausible.intersection(of.leader.plausible)]
        if near:
            near[0].members.append((each, judged))
        else:
            groups.append(CommitNews(judged.change, [(each, judged)]))
    return groups


def reproduce_commands(
    root: Path, config: Path | None, leader: Change, series: Sequence[str]
) -> list[str]:
    """asv's own command and, where both commits hold one of our engines, the gate's.

    Over all the commits that it may be, and then over those that narrow them. ``root``: the
    checkout; ``config``: asv's configuration, without which there is no command of asv's.
    """
    names = list(dict.fromkeys(each.partition("(")[0] for each in series))
    bench = [] if len(names) > _SHOWN_IN_A_COMMAND else ["--bench", f"^({'|'.join(names)})\\b"]
    whole = leader.last_before, leader.plausible[-1]
    commands = list[str]()
    for before, after in filter(None, (whole, leader.next_pair)):
        pair = before[:10], after[:10]
        try:
            for commit in (before, after):
                find_commit(root, commit, ENGINES.load("builtin").package)
            commands.append(shlex.join(["gcbench", "gate", *pair]))
        except ValueError:
            pass
        if config:
            asv = ["asv", "--config", config.name, "continuous", "--record-samples"]
            commands.append(shlex.join([*asv, *bench, *pair]))
    return commands
