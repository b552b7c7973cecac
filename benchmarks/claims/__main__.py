"""Does what four vLLM threads claim hold, and does it hold on this machine?

    python -m benchmarks.claims
        the claims, and the ruling on each
    python -m benchmarks.claims 26369-gen0-each-step
        one of them measured again: published, stored and new figure; does it hold here?
    python -m benchmarks.claims 26369-gen0-each-step -- --rounds 7 --wait 60
        what stands behind -- goes to gcbench compare, where that is what measures it

The exit status is 0 if all of them hold, 1 if one does not, 3 if one could not be measured or
settled. claims.toml has the claims, docs/claims.md the rulings.
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks.claims.again import Answer, ask, compare
from benchmarks.claims.finding import together
from benchmarks.claims.ledger import load
from benchmarks.claims.stored import stored_findings
from benchmarks.claims.tables import ledger_rows, print_answers
from engines.nearest import nearest
from harness.files import StoreError
from harness.render.lists import list_table
from harness.render.terminal import make_console


def main(arguments: Sequence[str]) -> int:
    """List the claims or measure some again; 2 for what cannot be done, 130 where interrupted."""
    words = list(arguments)
    own = words[: words.index("--")] if "--" in words else words
    more = words[len(own) + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.claims",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("claims", nargs="*", metavar="CLAIM")
    names = parser.parse_args(own).claims
    try:
        ledger = load()
        by_id = {claim.id: claim for claim in ledger.claims}
        if unknown := [name for name in names if name not in by_id]:
            near = ", ".join(nearest(unknown[0], by_id))
            raise ValueError(f"no claim {unknown[0]!r}; did you mean {near}?")
        claims = [by_id[name] for name in names] or ledger.claims
        stored = stored_findings(ledger, claims)
        if not names:
            list_table(ledger_rows(ledger, stored), make_console())
            return 0
        answers = ask(ledger, claims, lambda command: compare(command, more))
    except (ValueError, StoreError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        print("claims: interrupted", file=sys.stderr)
        return 130
    print_answers(answers, stored, make_console())
    return exit_code(answers)


def exit_code(answers: Sequence[Answer]) -> int:
    """0 if every claim holds, 1 if one does not, else 3."""
    settled = {together(answer.findings) for answer in answers}
    if "not held" in settled:
        return 1
    return 0 if settled == {"held"} else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
