"""Does a gate ever say that a change matters which does nothing?

Seeded edits of the built-in engine that no caller can notice: comments, blank lines, local
variables and private names renamed, functions and imports in another order. Each is gated against
HEAD by exact counts.

    python -m benchmarks.neutral_gates 300 --gate "--num-requests 128 --batch-size 128"

The last line of output is one JSON document.
"""

import argparse
import ast
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

import msgspec

from harness.machine.describe import code_identity, describe
from harness.report.kinds import read_result
from harness.tracking.gate.result import GateResult

_ROOT = Path(__file__).parents[1]
_PACKAGE = Path("engines/builtin")
_LEFT_ALONE = ("model", "ipc")
"""Kernels and models, which no cell of a gate runs."""
_COMMENTS = ("As before.", "In this order.", "Nothing else.", "See the table.")


class Source(NamedTuple):
    """A module of the engine."""

    text: str
    rng: Random
    is_own: Callable[[str], bool]
    """Whether a name stands in no other module."""

    @property
    def lines(self) -> list[str]:
        """Without their ends."""
        return self.text.split("\n")

    def nodes(self, *kinds: type[ast.AST]) -> list[ast.AST]:
        """Of these kinds, in random order."""
        found = [each for each in ast.walk(ast.parse(self.text)) if isinstance(each, kinds)]
        self.rng.shuffle(found)
        return found


def commented(source: Source) -> str:
    """Comments before three statements."""
    return _inserted(source, lambda indent: f"{indent}# {source.rng.choice(_COMMENTS)}")


def spaced(source: Source) -> str:
    """Blank lines before three statements."""
    return _inserted(source, lambda indent: "")


def _inserted(source: Source, line: Callable[[str], str]) -> str:
    lines = source.lines
    kinds = (ast.Assign, ast.Return, ast.For, ast.With, ast.Expr)
    places = [each.lineno - 1 for each in source.nodes(*kinds) if isinstance(each, ast.stmt)]
    for place in sorted(places[:3], reverse=True):
        indent = lines[place][: -len(lines[place].lstrip())]
        lines.insert(place, line(indent))
    return "\n".join(lines)


def renamed_local(source: Source) -> str:
    """A local variable of a function in which nothing else could have its name."""
    others = (ast.Lambda, ast.Global, ast.Nonlocal, ast.JoinedStr, ast.ClassDef)
    for function in source.nodes(ast.FunctionDef):
        inner = [each for each in ast.walk(function) if each is not function]
        if any(isinstance(each, (*others, ast.FunctionDef, ast.comprehension)) for each in inner):
            continue
        given = {each.arg for each in inner if isinstance(each, ast.arg)}
        names = [each for each in inner if isinstance(each, ast.Name)]
        stored = {each.id for each in names if isinstance(each.ctx, ast.Store)} - given
        if not stored:
            continue
        old = source.rng.choice(sorted(stored))
        new = f"{old}_now"
        lines = [line.encode() for line in source.lines]
        for each in sorted(names, key=lambda node: (node.lineno, node.col_offset), reverse=True):
            if each.id == old:
                line, end = lines[each.lineno - 1], each.end_col_offset
                lines[each.lineno - 1] = line[: each.col_offset] + new.encode() + line[end:]
        return b"\n".join(lines).decode()
    return source.text


def renamed_private(source: Source) -> str:
    """A name with an underscore that stands in no other module."""
    names = sorted(set(re.findall(r"\b_[a-z][a-z_]+\b", source.text)))
    source.rng.shuffle(names)
    old = next(filter(source.is_own, names), None)
    return re.sub(rf"\b{old}\b", f"{old}_so", source.text) if old else source.text


def other_order(source: Source) -> str:
    """Two functions that stand one after the other, exchanged."""
    bodies = [ast.parse(source.text).body]
    bodies += [each.body for each in source.nodes(ast.ClassDef) if isinstance(each, ast.ClassDef)]
    return _exchanged(source, bodies, ast.FunctionDef)


def other_imports(source: Source) -> str:
    """Two imports that stand one after the other, exchanged."""
    return _exchanged(source, [ast.parse(source.text).body], ast.ImportFrom)


def _exchanged(source: Source, bodies: list[list[ast.stmt]], kind: type[ast.stmt]) -> str:
    lines = source.lines
    found = []
    for body in bodies:
        for first, second in pairwise(body):
            between = lines[first.end_lineno : _begin(second)]
            is_named_alike = getattr(first, "name", 0) == getattr(second, "name", 1)
            are_alike = isinstance(first, kind) and isinstance(second, kind)
            if are_alike and not is_named_alike and not "".join(between).strip():
                found.append((first, between, second))
    if not found:
        return source.text
    first, between, second = source.rng.choice(found)
    begin, end = _begin(first), second.end_lineno
    ours, theirs = lines[begin : first.end_lineno], lines[_begin(second) : end]
    return "\n".join([*lines[:begin], *theirs, *between, *ours, *lines[end:]])


def _begin(node: ast.stmt) -> int:
    """The place of its first line, decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)]) - 1


EDITS = (commented, spaced, renamed_local, renamed_private, other_order, other_imports)


def edited(checkout: Path, seed: int) -> list[str]:
    """Edit two to five modules of a checkout; what was done, a phrase each."""
    rng, done = Random(seed), []
    modules = sorted(
        path
        for path in (checkout / _PACKAGE).rglob("*.py")
        if not set(path.relative_to(checkout / _PACKAGE).parts) & set(_LEFT_ALONE)
        and path.stat().st_size > 1_000
    )
    texts = {path: path.read_text() for path in checkout.rglob("*.py")}
    for path in rng.sample(modules, rng.randint(2, 5)):

        def is_own(name: str, path: Path = path) -> bool:
            word = re.compile(rf"\b{name}\b")
            return not any(word.search(text) for other, text in texts.items() if other != path)

        for edit in rng.sample(EDITS, rng.randint(1, 3)):
            after = edit(Source(path.read_text(), rng, is_own))
            compile(after, str(path), "exec")
            if after != path.read_text():
                path.write_text(after)
                done.append(f"{edit.__name__} {path.relative_to(checkout / _PACKAGE)}")
    return done


class Gated(NamedTuple):
    """What a gate said of an edit."""

    seed: int
    verdict: str
    seconds: float
    edits: list[str]
    said: list[str]


def gated(seeds: range, flags: list[str]) -> Iterator[Gated]:
    """Gate an edit of each seed."""
    with tempfile.TemporaryDirectory() as folder:
        checkout, output = Path(folder, "checkout"), Path(folder, "runs")
        clone = ["git", "clone", "--quiet", "--shared", str(_ROOT), str(checkout)]
        subprocess.run(clone, check=True)
        git = ["git", "-C", str(checkout), "-c", "user.name=gcbench", "-c", "user.email=gcbench"]
        for seed in seeds:
            subprocess.run([*git, "checkout", "--quiet", "--force", "origin/HEAD"], check=True)
            edits = edited(checkout, seed)
            subprocess.run([*git, "commit", "-qam", "An edit that does nothing"], check=True)
            path = Path(folder, f"{seed}.json")
            command = [sys.executable, "-m", "gcbench", "gate", "HEAD^", "HEAD", "--exact-only"]
            places = ["--repo", str(checkout), "--output", str(output), "--json", str(path)]
            began = monotonic()
            subprocess.run(
                [*command, *flags, *places], cwd=_ROOT, stdout=subprocess.DEVNULL, check=False
            )
            seconds = monotonic() - began
            result = read_result(path)
            assert isinstance(result, GateResult)
            uncovered = [f"{each.file} {each.name} ran nowhere" for each in result.not_run]
            said = [*result.missing, *uncovered]
            said += [
                f"{cell.id}: {change.metric} {change.before:g} -> {change.after:g}"
                for cell in result.cells
                for change in cell.exact
                if change.verdict != "same"
            ]
            yield Gated(seed, result.verdict, round(seconds, 1), edits, said)


def main() -> None:
    """Gate as many edits as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number", type=int, help="how many edits")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--gate", default="", metavar="FLAGS", help="of `gcbench gate`")
    asked = parser.parse_args()
    found = []
    for each in gated(range(asked.first, asked.first + asked.number), shlex.split(asked.gate)):
        found.append(each)
        print(each.seed, each.verdict, f"{each.seconds:g} s", *each.said, sep="  ", flush=True)
    known = {"code_commit": code_identity(_ROOT)[1], "machine": msgspec.to_builtins(describe())}
    verdicts = Counter(each.verdict for each in found)
    others = [each._asdict() for each in found if each.verdict != "same"]
    command = shlex.join(["python", "-m", "benchmarks.neutral_gates", *sys.argv[1:]])
    print(json.dumps({"command": command, **known, "verdicts": verdicts, "not same": others}))


if __name__ == "__main__":
    main()
