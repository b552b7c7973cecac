"""Writes every figure, table and picture of README and docs anew, from results/published.

    python -m benchmarks.figures

figures.toml says which figure is of which stored file. Says what changed, and which figures nothing
accounts for. The exit status is 2 where a sentence is not found, or is no longer true.
"""

import sys

from benchmarks.claims.ledger import ROOT
from benchmarks.claims.ledger import load as load_claims
from benchmarks.claims.page import claims_markdown
from benchmarks.claims.stored import stored_findings
from benchmarks.figures.entries import Entries, load, pages
from benchmarks.figures.page import filled, untraced
from benchmarks.figures.pictures import draw, is_current
from harness.files import StoreError, write_whole


def main() -> int:
    """Write what differs; 2 for what cannot be done."""
    try:
        entries = load()
        changed = write_pages(entries)
        for drawing in entries.pictures:
            if not is_current(drawing):
                draw(drawing)
                changed.append(f"docs/images/{drawing.file}")
        left = {
            page: len(untraced(page, (ROOT / page).read_text("utf-8"), entries)) for page in pages()
        }
    except (ValueError, StoreError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 2
    print(f"Changed: {', '.join(changed) or 'nothing'}.")
    print(
        f"Not traced yet: {sum(left.values()):,} figures on {sum(map(bool, left.values()))} pages."
    )
    for page, number in left.items():
        if number != entries.untraced.get(page, 0):
            print(f'figures.toml has to say "{page}" = {number} under [untraced].')
    return 0


def write_pages(entries: Entries) -> list[str]:
    """Which pages were others than they are now. All are made before any is written."""
    ledger = load_claims()
    made = {
        page: filled(page, (ROOT / page).read_text("utf-8"), entries)
        for page in sorted({each.page for each in entries.sentences})
    }
    made["docs/claims.md"] = claims_markdown(ledger, stored_findings(ledger, ledger.claims))
    changed = [page for page, text in made.items() if (ROOT / page).read_text("utf-8") != text]
    for page in changed:
        write_whole(ROOT / page, made[page].encode())
    return changed


if __name__ == "__main__":
    sys.exit(main())
