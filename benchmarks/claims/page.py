"""docs/claims.md: every claim of a ledger with its ruling."""

from collections.abc import Mapping, Sequence

from benchmarks.claims.conclusion import Finding
from benchmarks.claims.ledger import Claim, Ledger
from benchmarks.claims.words import counted, figure_words, ruling
from harness.render.table import Row


def claims_markdown(ledger: Ledger, stored: Mapping[str, Finding]) -> str:
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
        rows = [_claim_row(ledger, claim, stored, rulings[claim.id]) for claim in claims]
        sections.append(_table([head, *rows]))
    return "\n\n".join(sections) + "\n"


def _claim_row(ledger: Ledger, claim: Claim, stored: Mapping[str, Finding], ruled: str) -> Row:
    ours = ""
    if claim.holds_if is not None and (file := ledger.measurements[claim.measurement].result):
        figure = figure_words(claim.holds_if, stored[claim.id])
        per = f" per `{claim.holds_if.per}`" if claim.holds_if.per else ""
        ours = f"`{claim.holds_if.metric}`{per}: [{figure}](../results/published/{file})"
    shown = f"**{ruled}**" if ruled == "held" else ruled
    return f"{claim.says} `{claim.id}`", ours, shown, claim.why


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
Each row has a condition that a program can decide, and the ruling is computed from a stored
result: **held** where the whole 95 % interval of our figure meets the condition, not held where
none of it does. A published figure counts as met where ours lies within a tenth of it, unless the
condition says otherwise. Rows that need a GPU, or that cannot be tested here, say why instead of a
figure. Where a figure is called modelled the device is, so times are partly computed; counts and
bytes are exact.

Our figures lead to the stored results. `python -m benchmarks.claims CLAIM` measures a claim again
and puts the published, the stored and the new figure beside each other. The command that it runs
and the condition stand in `benchmarks/claims/claims.toml`, which also says how to add a claim."""
