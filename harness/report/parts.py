"""The short report of an experiment in parts: one answer over those that compare the same."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from math import log
from typing import NamedTuple

from harness import format as fmt
from harness.experiment.experiment_file import PartResult, PartsResult
from harness.experiment.reference import candidates
from harness.experiment.result import Comparison
from harness.metrics import METRICS
from harness.render.report import Listing, Picture, Report, known
from harness.render.verdict_words import SIGNS, VERDICTS, best_sign
from harness.report.answer import MOST_SENTENCES, headline
from harness.report.conclusion import conclude, in_short
from harness.report.experiment_image import experiment_image
from harness.report.header import INCOMPLETE, facts
from harness.report.parts_table import parts_table
from harness.report.power import detects_words, too_few_rounds
from harness.report.summary import cells_table, failure_lines, metric_words, phases_table
from harness.statistics.paired_ratio import MIN_ROUNDS


class _Candidate(NamedTuple):
    """One comparison that several parts make, by the title of the part."""

    name: str
    baseline: str
    metric: str
    found: dict[str, Comparison]

    @property
    def worth(self) -> tuple[int, float]:
        """Verdicts for it less those against it, then how much it gains over all parts."""
        verdicts = Counter(each.verdict for each in self.found.values())
        gain = sum(log(each.ratio) for each in self.found.values())
        return (
            verdicts["better"] - verdicts["worse"],
            -gain if METRICS[self.metric].direction == "lower" else gain,
        )


def _headline(result: PartsResult) -> str:
    """The first thing to know, in a line or two."""
    if not result.is_complete:
        return f"✗ Incomplete: {INCOMPLETE}."
    comparisons = _comparisons(result)
    if few := too_few_rounds(comparisons):
        return f"{SIGNS['inconclusive']} {fmt.capitalised(few)}."
    shared = _shared(result)
    if not shared:
        verdicts = Counter(each.verdict for each in comparisons)
        found = ", ".join(f"{verdicts[each]} {each}" for each in VERDICTS if verdicts[each])
        if not found:
            return "Nothing is compared here."
        return (
            f"{best_sign(verdicts)} {len(comparisons)} comparisons, each of a part alone: {found}."
        )
    best = shared[0]
    return f"{best_sign({each.verdict for each in best.found.values()})} {_sentence(best)}"


def _sentences(result: PartsResult) -> list[str]:
    """What else the parts say: of other candidates, and each part that compares something else."""
    if not result.is_complete:
        return []
    shared = _shared(result)
    told = {title for each in shared for title in each.found}
    others = [_sentence(each) for each in shared[1:]]
    more = len(others) - MOST_SENTENCES
    shown = others[:MOST_SENTENCES] + [f"{more} more candidates in the table."] * (more > 0)
    alone = [
        f"{part.title}: {headline(part.result)}" for part in result.parts if part.title not in told
    ]
    return [*shown, *_short_of_rounds(result), *alone, *_said_by_all(result)]


def _short_of_rounds(result: PartsResult) -> list[str]:
    """How many parts have too few rounds for a verdict, where others have enough."""
    short = [part for part in result.parts if too_few_rounds(part.result.comparisons)]
    if not short or too_few_rounds(_comparisons(result)):
        return []
    have = (each.rounds for part in short for each in part.result.comparisons)
    rounds = fmt.rounds(have).partition(" rounds")[0]
    return [
        f"No verdict in {len(short)} of {len(result.parts)} parts: a verdict takes {MIN_ROUNDS} "
        f"rounds, and this run has {rounds} there."
    ]


def _said_by_all(result: PartsResult) -> list[str]:
    """What each part would say by itself."""
    said = [in_short(part.result) for part in result.parts]
    above = [headline(part.result) for part in result.parts]
    return [
        each
        for each in (said[0] if said else ())
        if all(each in other for other in said) and not any(each in other for other in above)
    ]


def describe_parts(result: PartsResult) -> Report:
    """The answer, the table of all parts, and of each part its picture and its cells."""
    said = dict(facts(result.parts[0].result)) if result.parts else {}
    return Report(
        heading="gcbench compare",
        name=result.name,
        answer=_headline(result),
        tables=[parts_table(result)],
        sentences=_sentences(result),
        lists=[
            Listing("Trials without a result", list(_failures(result)), is_bad=True),
            *(Listing(part.title, _said_by(part)) for part in result.parts),
        ],
        sure=known(
            [
                ("surroundings", _surroundings(result)),
                ("detects", detects_words(_comparisons(result))),
            ]
        ),
        more=[
            table._replace(title=f"{part.title}: {table.title}")
            for part in result.parts
            for table in (cells_table(part.result), phases_table(part.result))
        ],
        facts=known([(label, said.get(label, "")) for label in ("machine", "interpreter")]),
        command=result.parts[0].result.command if result.parts else "",
        pictures=[
            Picture(
                part.title,
                "Host time per step of each cell, split into own work and collections, and its "
                "change against the part's baseline with the 95 % interval.",
                partial(experiment_image, part.result),
            )
            for part in result.parts
            if any(cell.samples for cell in part.result.cells)
        ],
    )


def _said_by(part: PartResult) -> list[str]:
    return [*(conclude(part.result) if part.result.is_complete else []), *part.result.notes]


def _failures(result: PartsResult) -> Iterator[str]:
    """With their part."""
    for part in result.parts:
        for line in failure_lines(part.result):
            yield f"{part.title}: {line}"


def _shared(result: PartsResult) -> list[_Candidate]:
    """The comparisons that two parts or more make, the best candidate first."""
    found: dict[tuple[str, str, str], dict[str, Comparison]] = {}
    for part in result.parts:
        for each in candidates(part.result):
            key = each.candidate, each.baseline, each.metric
            found.setdefault(key, {})[part.title] = each
    shared = [_Candidate(*key, of) for key, of in found.items() if len(of) > 1]
    return sorted(shared, key=lambda each: each.worth, reverse=True)


def _sentence(of: _Candidate) -> str:
    """ "process: TPOT median -27.0 to -2.9 % against inline; better in 6 of 9 parts"."""
    ratios = [each.ratio for each in of.found.values()]
    ends = dict.fromkeys(fmt.percent(end - 1, signed=True) for end in (min(ratios), max(ratios)))
    change = " to ".join(end.removesuffix(" %") for end in ends)
    verdicts = Counter(each.verdict for each in of.found.values())
    first, *others = ((each, verdicts[each]) for each in VERDICTS if verdicts[each])
    counted = [
        f"{first[0]} in {first[1]} of {len(of.found)} parts",
        *(f"{each} in {number}" for each, number in others),
    ]
    return (
        f"{of.name}: {metric_words(of.metric)} {change} % against {of.baseline}; "
        f"{', '.join(counted)}."
    )


def _comparisons(result: PartsResult) -> list[Comparison]:
    return [each for part in result.parts for each in part.result.comparisons]


def _surroundings(result: PartsResult) -> str:
    """In which parts the machine was busy."""
    known = {
        part.title: part.result.surroundings.is_busy
        for part in result.parts
        if part.result.surroundings is not None
    }
    if not known:
        return "how busy it was is not known"
    busy = [title for title, is_busy in known.items() if is_busy]
    if not busy:
        return f"quiet in {len(known)} of {len(result.parts)} parts"
    return f"busy in {len(busy)} of {len(result.parts)} parts: {'; '.join(busy)}"
