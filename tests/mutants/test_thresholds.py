"""The table of thresholds is whole: no number that decides is left out, and each is tested."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from mutant_list import ROOT, read_thresholds

TABLE = read_thresholds()


def numbers(source: str) -> Iterator[str]:
    """Constants of a module, by name, that hold a number or numbers by literals alone."""
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[target], value=value):
                yield from _of(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from _of(target, value)


def _of(target: ast.expr, value: ast.expr) -> Iterator[str]:
    match target, value:
        case ast.Name(id=name), _ if name.isupper() and _is_number(value):
            yield name
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            for each in zip(targets, values, strict=True):
                yield from _of(*each)
        case ast.Name(id=name), ast.Dict(keys=keys, values=values):
            if all(map(_is_number, values)):
                yield from (f"{name}.{key.value}" for key in keys if isinstance(key, ast.Constant))


def _is_number(value: ast.expr) -> bool:
    """Whether it is made of numbers, with operators and other names beside them."""
    match value:
        case ast.Constant(value=bool() | str() | bytes() | None):
            return False
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) or _is_number(right)
        case ast.Tuple(elts=elements) if elements:
            return all(map(_is_number, elements))
    return False


def files() -> list[str]:
    return sorted(
        {
            path.relative_to(ROOT).as_posix()
            for pattern in TABLE.files
            for path in ROOT.glob(pattern)
        }
    )


def test_every_number_of_the_files_that_decide_is_in_the_table():
    known = {file: sorted(reasons) for file, reasons in TABLE.others.items()}
    for row in TABLE.rows:
        known[row.file] = sorted([*known.get(row.file, []), row.constant])
    found = {file: sorted(numbers((ROOT / file).read_text())) for file in files()}
    assert {file: names for file, names in found.items() if names} == known


def test_every_pattern_names_files():
    assert all(any(ROOT.glob(pattern)) for pattern in TABLE.files)


def test_each_threshold_stands_where_it_says_and_is_moved_both_ways():
    for row in TABLE.rows:
        source = (ROOT / row.file).read_text()
        moved = {mutant.applied(source) for mutant in row.mutants}
        assert len(moved) == len(row.moved) >= 2, row
        assert source not in moved, row


def test_each_threshold_is_pinned_by_a_quick_test():
    for test in {row.test for row in TABLE.rows}:
        file, _, name = test.partition("::")
        module = ast.parse(Path(ROOT, file).read_text())
        tests = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
        marks = [ast.unparse(each) for each in tests[name].decorator_list] if name else []
        assert not any("mark.slow" in mark or "mark.slow" in mark for mark in marks), test
        assert "pytestmark" not in ast.unparse(module), test


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = 1", ["A"]),
        ("_A: int = -1", ["_A"]),
        ("A, B = 1 << 4, 'x'", ["A"]),
        ("A = B - 4", ["A"]),
        ("A = (0.1, 0.2)", ["A"]),
        ("A = {'x': 1, 'y': (1, 2)}", ["A.x", "A.y"]),
        ("A = 'x'\nB = True\nC = ()\nD = f(1)\ne = 1\nF = {1: 'x'}", []),
    ],
)
def test_what_is_a_number_of_a_module(source, names):
    assert list(numbers(source)) == names
