"""Real files, spoiled: cut, with bits turned over, with other values, or no files any more.

Whatever reads them says so in three lines at most, in bounded time and memory.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from attempts import Tried
from commands import run, wrong
from corpus import COMPARE, TINY, Corpus
from surroundings import Surroundings, damaged, half_written

LIMIT_SECONDS = 20.0
_TRIALS_SECONDS = 100.0
"""What real trials may take besides, on a machine that others use too."""
_DEEP = 10_000


class Read(NamedTuple):
    """What is read, a pattern below the corpus's results, and by which command. DIR stands for
    those results, FILE for the file itself.
    """

    pattern: str
    words: list[str]


RUN = ["run", *TINY, "--output", "DIR/../new"]
RESUME = [*COMPARE, "--output", "DIR/runs", "--resume", "NAME"]
BUILD = ["dashboard", "--output", "DIR/../site"]
READS = (
    *(
        Read(pattern, [*BUILD, "DIR"])
        for pattern in (
            "runs/*/plan.json",
            "runs/*/result.json",
            "runs/*/trials/*",
            "runs/*/rows/*.parquet",
            "nights/results/*.json",
            "nights/results/box/*",
            "nights/asv.conf.json",
        )
    ),
    *(
        Read(pattern, ["report", "DIR/nights/asv.conf.json"])
        for pattern in (
            "nights/results/benchmarks.json",
            "nights/results/box/*",
            "nights/asv.conf.json",
        )
    ),
    Read("runs/*/trials/*", ["report", "DIR/runs"]),
    Read("runs/*/result.json", ["report", "DIR/runs"]),
    *(
        Read(pattern, RESUME)
        for pattern in ("runs/*/plan.json", "runs/*/trials/*", "runs/*/*.npz", "runs/*/result.json")
    ),
    Read("workload.toml", ["list", "workloads", "FILE"]),
    Read("trace.jsonl", ["list", "workloads", "FILE"]),
    Read("trace.csv", ["list", "workloads", "FILE"]),
    Read("trace.csv", ["list", "workloads", "FILE", "--mooncake", "DIR/../new.jsonl"]),
    Read("workload.toml", [*RUN, "--workload", "FILE"]),
    Read("trace.jsonl", [*RUN, "--workload", "FILE"]),
    Read("experiment.toml", ["compare", "--experiment", "FILE", "--output", "DIR/../new"]),
    Read("profile.toml", [*RUN, "--axis", "device-profile=FILE"]),
    Read("model/config.json", [*RUN, "--axis", "model=DIR/model"]),
    Read("triage.toml", [*BUILD, "DIR/nights/asv.conf.json", "--triage", "FILE"]),
    Read(
        "triage.toml",
        [
            "nightly",
            "DIR/nights/asv.conf.json",
            "--machine",
            "box",
            "--triage",
            "FILE",
            "--output",
            "DIR/../night",
        ],
    ),
    Read(
        "nights/asv.conf.json", ["nightly", "FILE", "--machine", "box", "--output", "DIR/../night"]
    ),
    Read(
        "nights/results/box/*",
        ["nightly", "DIR/nights/asv.conf.json", "--machine", "box", "--output", "DIR/../night"],
    ),
)

HOSTILE: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    float("-inf"),
    1e308,
    -1e308,
    5e-324,
    0,
    -1,
    2**63,
    -(2**63),
    10**400,
    True,
    None,
    "",
    "x",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\udcff",
    "\u202e",
    "a" * 1_000_000,
    "../../../etc/passwd",
    "/dev/zero",
    [],
    {},
    [[]],
    [None] * 100_000,
    {"a": {"a": {}}},
    "<script>alert(1)</script>",
    "'; DROP TABLE",
    "1e308",
    "nan",
)


def attempt(random: Random, place: Surroundings, bench: "Bench") -> Tried:
    """One file, spoiled in one way, and read."""
    own = bench.corpus.copy_to(place.folder / "checkout")
    read = random.choice(READS)
    path = random.choice(sorted(own.results.glob(read.pattern)))
    way = random.choices(list(WAYS), [4 if each is _value else 1 for each in WAYS.values()])[0]
    while not WAYS[way](path, random):  # it has nothing of the kind
        way = random.choice(list(WAYS))
    stands_for = {"DIR": str(own.results), "FILE": str(path), "NAME": bench.experiment}
    words = [_replaced(word, stands_for) for word in read.words]
    limit = LIMIT_SECONDS + (_TRIALS_SECONDS if words[0] in ("run", "compare") else 0)
    ended = run(words, place, limit, cwd=own.checkout)
    found = wrong(ended, words, most_memory=False)
    found += [f"it took more than {limit:g} s"] if ended.is_late else []
    new = [own.checkout / name for name in ("new", "night", "site")]
    for folder in new:
        found += damaged(folder) + half_written(folder)
    found += place.left()
    said = f"{path.relative_to(own.results)}, {way}: {shlex.join(['gcbench', *words])}"
    return Tried((way, read.words[0]), said, found)


class Bench:
    """The corpus that is spoiled, each time anew."""

    def __init__(self, corpus: Corpus, _: Surroundings) -> None:
        self.corpus, self.experiment = corpus, corpus.experiment()


def _replaced(word: str, stands_for: dict[str, str]) -> str:
    for name, meant in stands_for.items():
        word = word.replace(name, meant)
    return word


def _cut(path: Path, random: Random) -> bool:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(len(content) or 1)])
    return True


def _flip(path: Path, random: Random) -> bool:
    content = bytearray(path.read_bytes())
    for _ in range(random.choice((1, 3, 30))):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)
    return True


def _noise(path: Path, random: Random) -> bool:
    path.write_bytes(random.randbytes(random.choice((0, 1, 100, 100_000))))
    return True


def _repeat(path: Path, random: Random) -> bool:
    content = path.read_bytes()
    path.write_bytes(content * random.choice((2, 3, 1 + 3_000_000 // len(content))))
    return True


def _value(path: Path, random: Random) -> bool:
    """One value of a JSON document, or of what is written line by line, becomes another."""
    if path.suffix == ".json":
        return _json_value(path, random)
    if path.suffix not in (".toml", ".csv", ".jsonl"):
        return False
    text = path.read_text()
    values = list(re.finditer(r"(?<=[=:,\s\[])[^\s=:,\[\]{}]+", text))
    chosen = random.choice(values)
    other = random.choice(HOSTILE)
    written = json.dumps(other) if random.random() < 0.7 else str(other)
    changed = text[: chosen.start()] + written + text[chosen.end() :]
    path.write_bytes(changed.encode(errors="surrogateescape"))
    return True


def _json_value(path: Path, random: Random) -> bool:
    value = json.loads(path.read_bytes())
    spots = list(_spots(value))
    if not spots:
        return False
    holder, key = random.choice(spots)
    holder[key] = random.choice(HOSTILE)
    path.write_bytes(json.dumps(value).encode(errors="surrogatepass"))
    return True


def _spots(value: Any) -> Sequence[tuple[Any, Any]]:
    """Every place in a document where a value stands."""
    found: list[tuple[Any, Any]] = []
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        found += [(value, key), *_spots(value[key])]
    return found


def _key(path: Path, random: Random) -> bool:
    """A key of a JSON document goes, or another comes."""
    if path.suffix != ".json":
        return False
    value = json.loads(path.read_bytes())
    holders = [value, *(holder[key] for holder, key in _spots(value))]
    holders = [each for each in holders if isinstance(each, dict) and each]
    if not holders:
        return False
    chosen = random.choice(holders)
    if random.random() < 0.7:
        del chosen[random.choice(list(chosen))]
    else:
        chosen["\x1b[31m" + "k" * 300] = random.choice(HOSTILE)
    path.write_bytes(json.dumps(value).encode(errors="surrogatepass"))
    return True


def _deep(path: Path, random: Random) -> bool:
    opened, closed = random.choice((("[", "]"), ('{"a":', "}")))
    inner = "" if opened == "[" else "1"
    nested = opened * _DEEP + inner + closed * _DEEP
    path.write_text(nested if path.suffix == ".json" else f"a = {nested}\n")
    return True


def _instead(make: Callable[[Path], object]) -> Callable[[Path, Random], bool]:
    """Something else has the file's name."""

    def spoil(path: Path, _: Random) -> bool:
        path.unlink()
        make(path)
        return True

    return spoil


def _huge(path: Path) -> None:
    """Gigabytes of zeros that take no room."""
    with path.open("wb") as file:
        file.truncate(8 << 30)


WAYS: dict[str, Callable[[Path, Random], bool]] = {
    "cut": _cut,
    "bits turned over": _flip,
    "noise": _noise,
    "repeated": _repeat,
    "another value": _value,
    "another key": _key,
    "nested deep": _deep,
    "a FIFO": _instead(os.mkfifo),
    "a folder": _instead(Path.mkdir),
    "a link to /dev/zero": _instead(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _instead(lambda path: path.symlink_to(path.name)),
    "a link to nothing": _instead(lambda path: path.symlink_to("nowhere")),
    "8 GiB of zeros": _instead(_huge),
}
