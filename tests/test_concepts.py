"""How much there is to know of the house; a change that makes it fewer lowers the caps."""

import ast
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import click
import pytest
from import_rules import PACKAGES

from harness.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
LONG = 60

CAPS = {
    "commands": 15,
    "options": 352,
    "schemas": 15,
    "lines of the product": 87_780,
    "lines of cli and report": 12_800,
    "lines of tests": 74_210,
    "public names in several modules": 0,
    f"functions of more than {LONG} lines": 11,
    "lines that keep the formatter out": 0,
    "words of README and docs": 54_870,
}

_DOORS = "a module each that is called alike, so that whoever calls need not know which it is"
_LEAVES = "workloads and engines are leaves, which know neither each other nor a third"
_VLLM = "named as in vLLM, and its name is among the bytes that are measured on the wire"
_VERBS = "a verb, from Python and as a command"

SHARED = {
    "EXAMPLES": "each command's, which its help shows",
    "main": "where a program begins",
    "setup_cache": "asv calls each suite's by this name",
    "TABLE": "each suite's, beside what asv calls",
    "OpcodeCounter": _DOORS,
    "tracers": _DOORS,
    "Int32Array": _LEAVES,
    "Int64Array": _LEAVES,
    "MOST_BYTES": _LEAVES,
    "open_regular": _LEAVES,
    "read_regular": _LEAVES,
    "Logprob": _VLLM,
    "SamplingParams": _VLLM,
    "advise": _VERBS,
    "bisect": _VERBS,
    "compare": _VERBS,
    "explain": _VERBS,
    "gate": _VERBS,
    "releases": _VERBS,
    "run": _VERBS,
}
"""Public names that several modules have, 20 at most, with the reason."""


def sources(*folders: str) -> dict[Path, str]:
    return {
        path: path.read_text()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def lines(*folders: str) -> int:
    return sum(len(text.splitlines()) for text in sources(*folders).values())


def commands() -> list[click.Command]:
    found = (each.target.split(":") for each in COMMANDS.values())
    return [getattr(import_module(module), name) for module, name in found]


def options(command: click.Command) -> int:
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    own = sum(isinstance(each, click.Option) for each in command.params)
    return own + sum(map(options, inner))


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives it."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def counted() -> dict[str, int]:
    product = sources(*PACKAGES)
    trees = {path: ast.parse(text) for path, text in product.items()}
    modules: defaultdict[str, set[Path]] = defaultdict(set)
    for path, tree in trees.items():
        for name in (name for node in tree.body for name in bound(node)):
            if not name.startswith("_"):
                modules[name].add(path)
    functions = [
        node.end_lineno - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    text = "".join(product.values())
    everything = [*product.values(), *sources("tests", "benchmarks", "examples").values()]
    return {
        "commands": len(commands()),
        "options": sum(map(options, commands())),
        "schemas": len(set(re.findall(r'"(gcbench\.[a-z-]+)/\d', text))),
        "lines of the product": lines(*PACKAGES),
        "lines of cli and report": lines("harness/cli", "harness/render", "harness/report"),
        "lines of tests": lines("tests"),
        "public names in several modules": sum(
            len(each) > 1 for name, each in modules.items() if name not in SHARED
        ),
        f"functions of more than {LONG} lines": sum(each > LONG for each in functions),
        "lines that keep the formatter out": sum(
            len(re.findall(r"# fmt: (skip|off)$", each, re.MULTILINE)) for each in everything
        ),
        "words of README and docs": sum(
            len(page.read_text().split())
            for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        ),
    }


@pytest.fixture(scope="module")
def found() -> dict[str, int]:
    return counted()


@pytest.mark.parametrize("concept", CAPS)
def test_there_is_no_more_of_it(found, concept):
    assert found[concept] <= CAPS[concept], "take something out, or say in decisions.md why not"


def test_names_that_several_modules_have_are_few():
    assert len(SHARED) <= 20


def test_every_cap_is_near_what_there_is(found):
    """A cap that is never reached holds nothing."""
    assert {name: cap for name, cap in CAPS.items() if found[name] < 0.97 * cap} == {}
