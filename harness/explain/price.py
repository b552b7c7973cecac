"""What a remedy would cost: where an engine's code makes a line's objects, reads them, and relies
on their type.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.explain.hand_on import Flow, HandedOn, Syntax, called, taken
from harness.explain.result import Price, SourcePlace
from harness.explain.sites import LineOfSites
from harness.explain.sources import Sources
from workloads.files.regular_file import read_regular

_MAKING = {
    "list": (ast.List, ast.ListComp),
    "tuple": (ast.Tuple,),
    "dict": (ast.Dict, ast.DictComp),
    "set": (ast.Set, ast.SetComp),
    "function": (ast.Lambda, ast.GeneratorExp),
    "generator": (ast.GeneratorExp,),
}
"""Expressions that make objects of a type; any other type is made by a call."""

_HANDED_ON = {"list", "tuple", "dict", "set"}
"""Types whose readers may rely on what another type does not bear."""


_HAND_ONS = 4
"""From one name to the next: so far are vLLM's sampled tokens from its scheduler."""

_LEAST_SHARE = 0.01


class _Priced:
    """A line, the names by which its objects are handed on, and what has been found of them."""

    def __init__(self, line: LineOfSites, syntax: Syntax) -> None:
        self.line = line
        self.classes = {name.rpartition(".")[2] for name in line.types if "." in name}
        self.made: set[SourcePlace] = {(line.file, line.line)}
        self.read: set[SourcePlace] = set()
        self.hazards: dict[str, set[SourcePlace]] = defaultdict(set)
        self.names, self._followed = HandedOn(), HandedOn()
        flow = Flow(syntax)
        for node in _makers(line, syntax):
            flow.follow(node)
        self._take(line.file, flow)

    def hand_on(self) -> HandedOn:
        """The names that have come up since."""
        new = self.names.without(self._followed)
        self._followed.add(new)
        return new

    def look_at(self, file: str, syntax: Syntax, names: HandedOn) -> None:
        """Find makers in a file, and readers under some names."""
        flow = Flow(syntax)
        for node in syntax.nodes:
            match node:
                case ast.Call():
                    if (name := called(node)) in self.classes:
                        self.made.add((file, node.lineno))
                    if name in names.functions:
                        flow.read(node)
                case ast.Attribute(attr=name):
                    if name in names.attributes and syntax.reads(node):
                        flow.read(node)
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    for scope, parameter in taken(node, names.parameters):
                        flow.variable(scope, parameter)
        self._take(file, flow)

    def _take(self, file: str, flow: Flow) -> None:
        self.names.add(flow.names)
        self.read |= {(file, line) for line in flow.lines}
        for hazard, lines in flow.hazards.items():
            self.hazards[hazard] |= {(file, line) for line in lines}

    def price(self) -> Price:
        """What came of it."""
        hazards = self.hazards if _HANDED_ON.intersection(self.line.types) else {}
        return Price(
            file=self.line.file,
            line=self.line.line,
            made=sorted(self.made),
            read=sorted(self.read - self.made),
            hazards={hazard: sorted(places) for hazard, places in sorted(hazards.items())},
        )


def prices(
    lines: Sequence[LineOfSites], roots: Sequence[str], folders: Iterable[str]
) -> list[Price]:
    """Of the lines with 1 % of the share or more whose source can be read, in their order.

    ``roots``: where files lie; ``folders``: whose code is searched beside the folders of the lines.
    Names are all that is looked at: what has the same name is found too, and what is handed on
    more than four times is lost.
    """
    sources, priced = Sources(roots), []
    for line in lines:
        is_worth = line.file and line.share >= _LEAST_SHARE
        path = sources.path(line.file) if is_worth else None
        if path is not None and (syntax := _parsed(_text(path))) is not None:
            priced.append(_Priced(line, syntax))
    tree = _Tree(roots, [*folders, *(str(Path(each.line.file).parent) for each in priced)])
    for _ in range(_HAND_ONS):
        names = {each: each.hand_on() for each in priced}
        words = {each: each.classes | names[each].words for each in priced}
        for file, syntax, found in tree.holding({word for one in words.values() for word in one}):
            for each in priced:
                if found & words[each]:
                    each.look_at(file, syntax, names[each])
    return [each.price() for each in priced]


class _Tree:
    """The source files in some folders, each folder below the first of the roots that has it."""

    def __init__(self, roots: Sequence[str], folders: Iterable[str]) -> None:
        self._files: dict[str, str] = {}
        self._parsed: dict[str, Syntax | None] = {}
        for folder in folders:
            holders = [Path(each) for each in roots if each and (Path(each) / folder).is_dir()]
            for root in holders[:1]:
                for path in sorted((root / folder).rglob("*.py")):
                    self._files.setdefault(path.relative_to(root).as_posix(), _text(path))

    def holding(self, words: set[str]) -> Iterator[tuple[str, Syntax, set[str]]]:
        """Files that hold any of the words, and which."""
        if not words:
            return
        any_word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
        for file, text in self._files.items():
            if found := set(any_word.findall(text)):
                if file not in self._parsed:
                    self._parsed[file] = _parsed(text)
                if (syntax := self._parsed[file]) is not None:
                    yield file, syntax, found


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="replace")
    except OSError:
        return ""


def _parsed(text: str) -> Syntax | None:
    try:
        return Syntax(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _makers(line: LineOfSites, syntax: Syntax) -> Iterator[ast.expr]:
    """The expressions at a line that make its objects."""
    here = [
        each for each in syntax.nodes if isinstance(each, ast.expr) and each.lineno == line.line
    ]
    calls = [each for each in here if isinstance(each, ast.Call)]
    for kind in line.types:
        bare = kind.rpartition(".")[2]
        named = [each for each in calls if called(each) == bare]
        displays = [each for each in here if isinstance(each, _MAKING.get(kind, ()))]
        sums = [each for each in here if isinstance(each, ast.BinOp)]
        yield from displays or named or calls[:1] or sums[:1]
