"""What a change may cost, said by its author: in a commit's message, or in a file of the tree.

Gate-accepts: memory_peak_per_step +2 KiB

[[accepts]]                               # in gate-accepts.toml
metric = "bytecodes_per_request_step"     # or "outputs": other tokens than BASE's
most = "+3 %"                             # of BASE's; none for outputs
reason = "stop strings are looked for"
cell = "flat_arrays · columnar"           # every cell where it is left out
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from engines.nearest import nearest
from harness import format as fmt
from harness.machine.git import Git
from harness.metrics import METRICS
from harness.tracking.gate.accepts_file import ACCEPTS_FILE, read_accepts
from harness.tracking.gate.ancestry import last_common
from harness.tracking.gate.trees import WORK_TREE, checkout, commit_with, plain_text

TRAILER = "Gate-accepts"
OUTPUTS = "outputs"
"""In the place of a metric: that HEAD's outputs are others than BASE's."""

_AMOUNT = re.compile(r"([+-])(\d[\d,]{0,14}(?:\.\d{1,15})?) ?(%|B|KiB|MiB)?")
_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20}
_SIGN = {"lower": "+", "higher": "-"}


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """By how much ``metric`` may be worse: in its unit, or as a share of BASE's (``is_share``).

    ``metric`` is `OUTPUTS` where other outputs are accepted, and ``most`` 0. ``cell``: its id, ""
    for all. ``place``: the commit or file that says so, ``reason``: its subject, or what it says.
    """

    metric: str
    most: float
    is_share: bool
    cell: str
    place: str
    reason: str

    def covers(self, metric: str, cell: str) -> bool:
        """Whether it is about this metric of this cell."""
        return self.metric == metric and self.cell in ("", cell)

    def amount(self, before: float) -> float:
        """The most by which a figure that was ``before`` may be worse."""
        return self.most * abs(before) if self.is_share else self.most


def read_waivers(repo: Path, base: str, head: str, package: str) -> list[Waiver]:
    """What is said between two commits, or the work tree: by HEAD's own commits and its file.

    What their last common commit says has been merged, and accepts nothing any more. Raises
    ValueError for one that cannot be read.
    """
    with checkout(repo) as git:
        theirs, ours = (commit_with(git, commit, package) for commit in (base, head))
        trailers = [_of_trailer(each) for each in _trailers(git, theirs, ours)]
        common = last_common(git, theirs, ours) or theirs
        return trailers + _of_file(git, common, ours, is_work_tree=head == WORK_TREE)


class _Trailer(NamedTuple):
    commit: str
    subject: str
    value: str


def _trailers(git: Git, base: str, head: str) -> list[_Trailer]:
    wanted = f"%H %s%n%(trailers:key={TRAILER},valueonly,unfold)"
    listed = git("log", "-z", "--encoding=UTF-8", f"--format={wanted}", f"{base}..{head}")
    found = []
    for commit in filter(None, listed.split("\0")):
        first, *values = commit.split("\n")
        sha, _, subject = first.partition(" ")
        found += [_Trailer(sha, plain_text(subject), value) for value in values if value]
    return found


def _of_trailer(trailer: _Trailer) -> Waiver:
    place = f"commit {trailer.commit[:10]}"
    metric, _, most = trailer.value.strip().partition(" ")
    return make_waiver(metric, most, "", place, trailer.subject, place)


def _of_file(git: Git, common: str, head: str, *, is_work_tree: bool) -> list[Waiver]:
    """Entries of HEAD's file that the common commit's has not."""
    entries = read_accepts(git, head, is_work_tree=is_work_tree).accepts
    try:
        merged = Counter(read_accepts(git, common, is_work_tree=False).accepts)
    except ValueError:
        merged = Counter()
    waivers = []
    for number, entry in enumerate(entries, start=1):
        where = f"{ACCEPTS_FILE}, accepts number {number}"
        if not entry.reason.strip():
            raise ValueError(f"{where}: has no reason; say why, for who reviews it")
        made = make_waiver(
            entry.metric, entry.most, entry.cell, ACCEPTS_FILE, plain_text(entry.reason), where
        )
        if merged[entry]:
            merged[entry] -= 1
        else:
            waivers.append(made)
    return waivers


def make_waiver(metric: str, most: str, cell: str, place: str, reason: str, where: str) -> Waiver:
    """One that says so much.

    Raises ValueError for a metric that nothing counts, and for an amount that is none.
    """
    most = most.strip()
    is_share, amount = False, 0.0
    if metric == OUTPUTS:
        if most:
            raise ValueError(
                f"{where}: {fmt.excerpt(most)} after outputs, which are accepted or are not; "
                "leave it out"
            )
    else:
        is_share, amount = _amount(metric, most, where)
    return Waiver(
        metric=metric, most=amount, is_share=is_share, cell=cell, place=place, reason=reason
    )


def _amount(metric: str, most: str, where: str) -> tuple[bool, float]:
    known = METRICS.get(metric)
    if known is None or known.kind != "exact" or known.direction == "neither":
        names = [m.name for m in METRICS.values() if m.kind == "exact" and m.direction != "neither"]
        near = " or ".join(nearest(metric, [*names, OUTPUTS])[:3])
        raise ValueError(
            f"{where}: {fmt.excerpt(metric)} is no exact metric; is it {near}? docs/metrics.md "
            "has them all"
        )
    is_bytes, sign = known.unit == "B", _SIGN[known.direction]
    found = _AMOUNT.fullmatch(most)
    unit = (found[3] or "") if found else ""
    size = float(found[2].replace(",", "")) if found and found[1] == sign else 0.0
    if not size or not (unit == "%" or bool(unit) == is_bytes):
        example = f"{sign}2 KiB" if is_bytes else f"{sign}5"
        raise ValueError(
            f"{where}: {fmt.excerpt(most)} is not how much of {metric} is accepted; write it as "
            f"{metric} {example} or {metric} {sign}3 %"
        )
    return (True, size / 100) if unit == "%" else (False, size * _BYTES.get(unit, 1))
