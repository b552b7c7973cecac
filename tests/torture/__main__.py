"""Tries to break gcbench, and says what held: python tests/torture [PART]... [--seed N]

Parts: command lines, signals at random moments, full and read-only disks, hostile files, crash
points. Ends with a table and, for each failure, the command that repeats it; status 1 if any.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), *(str(HERE.parent / each) for each in ("harness", "harness/tracking"))]
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))

from attempts import Tried, random_of  # noqa: E402
from processes import leave_others_memory  # noqa: E402


class Part(NamedTuple):
    """``module`` has the attempts, as many as ``attempts`` unless another number is given."""

    module: str
    attempts: int


PARTS = {
    "lines": Part("command_lines", 500),
    "signals": Part("signals", 200),
    "disks": Part("disk_faults", 30),
    "files": Part("hostile_files", 200),
    "points": Part("crash_moments", 40),
}


def main() -> int:
    """Make the attempts; 1 if anything broke."""
    asked = _arguments()
    for number in (signal.SIGINT, signal.SIGTERM):  # even where a shell has them ignored
        signal.signal(number, signal.default_int_handler)
    leave_others_memory()
    results: dict[str, list[tuple[int, Tried]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="torture-") as folder,
        suppress(KeyboardInterrupt),  # what was tried until then is told
    ):
        for part in asked.parts or PARTS:
            attempt = _prepared(part, Path(folder) / part)
            numbers = (
                [asked.only]
                if asked.only is not None
                else range(asked.attempts or PARTS[part].attempts)
            )
            began, tried = time.monotonic(), results.setdefault(part, [])
            for number in numbers:
                tried.append((number, result := attempt(number, asked.seed)))
                if result.wrong:
                    _say_failure(part, asked.seed, number, result)
                _say_progress(part, tried, len(numbers), began)
    _say_table(results, asked.seed)
    return int(any(each.wrong for tried in results.values() for _, each in tried))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--attempts", type=int, metavar="N", help="of each part")
    parser.add_argument(
        "--seed",
        type=int,
        default=int(time.time()) // 86_400,
        metavar="N",
        help="of all of them; the day's number unless given",
    )
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this attempt and no other")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return asked


def _prepared(part: str, folder: Path) -> Callable[[int, int], Tried]:
    """What makes one attempt of a part; what all of them need is made now."""
    from corpus import make_corpus
    from surroundings import Surroundings

    common = Surroundings(folder / "common")
    module = import_module(PARTS[part].module)
    bench = module.Bench(make_corpus(common, is_measured=part == "files"), common)

    def attempt(number: int, seed: int) -> Tried:
        place = Surroundings(folder / str(number))
        try:
            tried: Tried = module.attempt(random_of(part, seed, number), place, bench)
        except Exception:
            tried = Tried(("torture itself",), "no attempt", [traceback.format_exc()])
        finally:
            place.remove()
        return tried

    return attempt


def _say_failure(part: str, seed: int, number: int, result: Tried) -> None:
    print(f"\nFAILED {part} {number}: {result.what}")
    for sentence in result.wrong:
        print(f"  {sentence}")
    print(f"  again: make torture PARTS={part} SEED={seed} ONLY={number}", flush=True)


def _say_progress(part: str, tried: list[tuple[int, Tried]], total: int, began: float) -> None:
    done, failed = len(tried), sum(bool(each.wrong) for _, each in tried)
    left = (time.monotonic() - began) / done * (total - done)
    words = f"{part}: {done} of {total}, {failed} failed, {left / 60:.1f} minutes left"
    if sys.stderr.isatty():
        print(f"\r{words}   ", end="" if done < total else "\n", file=sys.stderr, flush=True)
    elif done % max(1, total // 10) == 0:
        print(words, file=sys.stderr, flush=True)


def _say_table(results: dict[str, list[tuple[int, Tried]]], seed: int) -> None:
    """A row for each kind; an attempt is in the row of each of its kinds."""
    print(f"\nseed {seed}\n\n| part | kind | tried | survived |\n|---|---|---|---|")
    for part, tried in results.items():
        count, failed = Counter[str](), Counter[str]()
        for _, each in tried:
            count.update(("all", *each.kinds))
            failed.update(("all", *each.kinds) if each.wrong else ())
        for kind in sorted(count, key=lambda kind: (kind == "all", kind)):
            print(f"| {part} | {kind} | {count[kind]} | {count[kind] - failed[kind]} |")
    for part, tried in results.items():
        for number, each in tried:
            if each.wrong:
                print(f"again: make torture PARTS={part} SEED={seed} ONLY={number}")


if __name__ == "__main__":
    sys.exit(main())
