"""What gcbench itself has to say: one line of standard error that no terminal takes for orders."""

import sys

from harness.format import printable

_MOST_CHARACTERS = 2000


def say(sentence: str) -> None:
    """Print a sentence, which may hold names and texts out of somebody's files."""
    if len(sentence) > _MOST_CHARACTERS:
        sentence = f"{sentence[:_MOST_CHARACTERS]}…"
    print(f"gcbench: {printable(sentence)}", file=sys.stderr)
