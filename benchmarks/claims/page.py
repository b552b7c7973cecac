"""docs/claims.md: every claim of a ledger with its ruling."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.claims.conclusion import Finding
from benchmarks.claims.ledger import Claim, Ledger
from benchmarks.claims.words import RULINGS, condition_words, counted, figure_words, ruling
from harness.report.table import Row


def claims_markdown(ledger: Ledger, stored: Mapping[str, Finding]) -> str:
    """docs/claims.md, from the ledger and from what stored results say."""
    rulings = {claim.id: ruling(claim, stored) for claim in ledger.claims}
    sections = [_HEAD.format(total=len(rulings), counted=counted([*rulings.values()]))]
    summary: list[Row] = [("thread", *RULINGS[:4])]
    for thread in ledger.threads:
        number = Counter(rulings[c.id] for c in ledger.claims if c.thread == thread.id)
        link = f"[{thread.title}](#{_anchor(thread.title)})"
        summary.append((link, *(str(number[name] or "") for name in RULINGS[:4])))
    answers = [f"- **{each.title}**: {each.answer}" for each in ledger.threads if each.answer]
    sections += ["\n".join(answers), _table(summary), _HOW]
    for thread in ledger.threads:
        claims = [claim for claim in ledger.claims if claim.thread == thread.id]
        sections.append(f"## {thread.title}\n\n{thread.url}")
        head = ("claim", "published", "holds if", "ours", "ruling", "why")
        rows = [_claim_row(claim, stored.get(claim.id), rulings[claim.id]) for claim in claims]
        sections.append(_table([head, *rows]))
        sections.append(_commands(ledger, claims))
    return "\n\n".join(filter(None, [*sections, _ADDING])) + "\n"


def _claim_row(claim: Claim, stored: Finding | None, ruled: str) -> Row:
    condition = ours = ""
    if claim.holds_if is not None:
        condition = condition_words(claim.holds_if)
        ours = "" if stored is None else figure_words(claim.holds_if, stored)
    shown = f"**{ruled}**" if ruled == "held" else ruled
    return f"{claim.says} `{claim.id}`", claim.published, condition, ours, shown, claim.why


def _commands(ledger: Ledger, claims: Sequence[Claim]) -> str:
    """Each command once, with the claims that it tells of and the file with its result."""
    blocks = []
    for name, measurement in ledger.measurements.items():
        told = ", ".join(f"`{claim.id}`" for claim in claims if claim.measurement == name)
        if told:
            file = measurement.result
            stored = f": [{file}](../results/published/{file})" if file else ""
            blocks.append(f"{told}{stored}\n\n```\n{measurement.command}\n```")
    return "\n\n".join(blocks)


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
figure. Devices are modelled wherever the command names neither `--device null` nor `cpu`, so
times there are partly computed; counts and bytes are exact.

`python -m benchmarks.claims` lists the rows. `python -m benchmarks.claims CLAIM` measures one again
and puts the published, the stored and the new figure beside each other."""

_ADDING = """\
## Adding a claim

A claim is a `[[claims]]` of `benchmarks/claims/claims.toml`. It names the `[measurements.NAME]`
that tells, a command of `gcbench compare` and the file in `results/published` that its `--json`
has written, and it has the condition:

| key of `holds_if` | meaning |
|---|---|
| `metric` | any of `gcbench list metrics` |
| `per` | a metric of the same cell to divide it by |
| `cell` | the axes that tell the cell from the others of the command |
| `against` | the same of the cell to divide by; without it the figure is the cell's own |
| `at_least`, `at_most` | bounds of the figure: a ratio with `against`, else in the metric's unit |
| `verdict` | instead of bounds: `better`, `worse` or `same`, as the comparison says |
| `part` | the title of a part, where the command is `gcbench compare --experiment` |

Instead of a result a claim can have `declared = "needs a GPU"` or `declared = "not testable here"`,
with the reason in `why`. It may have a measurement and a condition all the same."""
