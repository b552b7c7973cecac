"""docs/claims.md: every claim of a ledger with its ruling."""

from collections.abc import Mapping, Sequence

from benchmarks.claims.conclusion import Conclusion
from benchmarks.claims.document import Reading
from benchmarks.claims.finding import Finding
from benchmarks.claims.ledger import Claim, Ledger
from benchmarks.claims.words import counted, figure_words, ruling
from harness.render.table import Row


def claims_markdown(ledger: Ledger, stored: Mapping[str, Sequence[Finding]]) -> str:
    """docs/claims.md, from the ledger and from what stored results say."""
    rulings = {claim.id: ruling(claim, stored) for claim in ledger.claims}
    sections = [_HEAD.format(total=len(rulings), counted=counted([*rulings.values()]))]
    answers = []
    for thread in ledger.threads:
        own = counted([rulings[c.id] for c in ledger.claims if c.thread == thread.id])
        link = f"[{thread.title}](#{_anchor(thread.title)})"
        answers.append(f"- **{link}** ({own}): {thread.answer}")
    sections += ["\n".join(answers), _HOW]
    for thread in ledger.threads:
        claims = [claim for claim in ledger.claims if claim.thread == thread.id]
        sections.append(f"## {thread.title}\n\n{thread.url}")
        head = ("claim", "ours", "ruling", "why")
        rows = [
            _claim_row(ledger, claim, stored.get(claim.id, ()), rulings[claim.id])
            for claim in claims
        ]
        sections.append(_table([head, *rows]))
    return "\n\n".join(sections) + "\n"


def _claim_row(ledger: Ledger, claim: Claim, found: Sequence[Finding], ruled: str) -> Row:
    ours: list[str] = []
    last = ""
    for wanted, finding in zip(claim.conditions, found, strict=False):
        name = _figure_name(wanted)
        link = f"[{figure_words(wanted, finding)}](../results/published/"
        link += f"{ledger.source(wanted).result})"
        ours.append(link if name == last else f"{name}: {link}")
        last = name
    shown = f"**{ruled}**" if ruled == "held" else ruled
    return f"{claim.says} `{claim.id}`", ", ".join(ours), shown, claim.why


def _figure_name(wanted: Conclusion | Reading) -> str:
    if isinstance(wanted, Reading):
        return " · ".join(wanted.figure)
    return f"`{wanted.metric}`" + (f" per `{wanted.per}`" if wanted.per else "")


def _table(rows: Sequence[Row]) -> str:
    head, *body = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows
    )
    return "\n".join((head, "|---" * len(rows[0]) + "|", *body))


def _anchor(title: str) -> str:
    """What GitHub makes of a heading."""
    kept = "".join(each for each in title.lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


_HEAD = """\
# Claims

<!-- Written from benchmarks/claims/claims.toml by `claims_markdown`; a test compares the two. -->

gcbench grew out of four threads of vLLM, which make {total} claims that have a figure or could have
one. Of these, {counted}."""

_HOW = """\
Each row has conditions that a program can decide, and its ruling is computed from stored results:
**held** where the whole 95 % interval of our figure meets the condition, not held where none of it
does.

- **A published value rules on both sides**: ours has to lie within a tenth of it, or of the change
  where it is one. Far more than claimed is not held either.
- **A direction or a bound rules on one side**: "faster", "at least twice".

A row with several figures needs them all. *Modelled* means that the device is, so times are partly
computed; counts and bytes are exact.

Our figures lead to the stored results. `python -m benchmarks.claims CLAIM` measures a claim again
and puts the published, the stored and the new figure side by side. Commands and conditions
stand in `benchmarks/claims/claims.toml`, which also says how to add a claim."""
