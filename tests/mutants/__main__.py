"""Plants one wrong decision after another and says which test notices: ``python tests/mutants``.

    python tests/mutants                       all of mutants.toml
    python tests/mutants --thresholds          each threshold of thresholds.toml, moved
    python tests/mutants device-late 'load-*'  those whose names match
    python tests/mutants --list                what there is

Exit status 1: one survives. 2: one cannot be planted, or its tests fail without it.
"""

import signal
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from fnmatch import fnmatchcase

from mutant_list import ROOT, Mutant, read_mutants, read_thresholds
from mutated_tree import MutatedTree, TestsError

_SURVIVED, _WRONG, _INTERRUPTED = 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = ArgumentParser(
        "tests/mutants", description=__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="names, or patterns of names")
    parser.add_argument("--thresholds", action="store_true", help="moved thresholds instead")
    parser.add_argument("--list", action="store_true", help="print names, and try none")
    asked = parser.parse_args(arguments)
    mutants = [m for t in read_thresholds().rows for m in t.mutants]
    if not asked.thresholds:
        mutants = read_mutants()
    unknown = [each for each in asked.names if not any(fnmatchcase(m.name, each) for m in mutants)]
    if unknown:
        parser.error(f"no mutant is called {unknown[0]}; --list names them")
    chosen = [
        m for m in mutants if not asked.names or any(fnmatchcase(m.name, n) for n in asked.names)
    ]
    if asked.list:
        print("\n".join(f"{each.name}: {each.wrong}" for each in chosen))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nor does that leave a copy
    try:
        return _try(chosen)
    except KeyboardInterrupt:
        print("\ninterrupted; nothing is left")
        return _INTERRUPTED


def _try(mutants: Sequence[Mutant]) -> int:
    survivors, wrong = list[str](), list[str]()
    with MutatedTree.of(ROOT) as tree:
        try:
            tree.check(dict.fromkeys(test for each in mutants for test in each.tests))
        except TestsError as error:
            print(error)
            return _WRONG
        began = time.monotonic()
        for number, mutant in enumerate(mutants, start=1):
            start = time.monotonic()
            try:
                killer = tree.killer(mutant, number)
            except (TestsError, ValueError) as error:
                wrong.append(mutant.name)
                said = f"WRONG     {mutant.name}: {error}"
            else:
                said = f"killed    {mutant.name} by {killer}"
                if not killer:
                    survivors.append(mutant.name)
                    said = f"SURVIVED  {mutant.name}: {mutant.wrong} ({', '.join(mutant.tests)})"
            now = time.monotonic()
            left = (now - began) / number * (len(mutants) - number)
            print(
                f"{number}/{len(mutants)}  {said}  [{now - start:.1f} s, {left:.0f} s left]",
                flush=True,
            )
    killed = len(mutants) - len(survivors) - len(wrong)
    print(f"{killed} of {len(mutants)} killed in {time.monotonic() - began:.0f} s")
    for title, names in (("survived", survivors), ("wrong", wrong)):
        if names:
            print(f"{title}: {', '.join(names)}")
    return _WRONG if wrong else _SURVIVED if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
