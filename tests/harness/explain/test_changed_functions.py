"""Which functions a change has touched: by their code, not by their lines."""

from pathlib import Path

import pytest

from harness.explain.changed_functions import changed_functions, differing_functions

BEFORE = '''
"""A module."""

import os
import sys

LIMIT = 3

class Empty: pass

class Loop:
    """A loop."""

    turns = 0

    def run(self, count: int) -> None:
        """Run."""
        for _ in range(count):
            self.turn()

    def turn(self):
        def inner():
            return 1
        return inner()


def other(): return [n for n in range(3)]
'''


def changed(folder: Path, *replaced: tuple[str, str], new: str = "") -> list[str]:
    """Names of what is changed where these are replaced in `BEFORE`; ``new``: another file."""
    after = BEFORE
    for old, text in replaced:
        assert old in after
        after = after.replace(old, text, 1)
    for side, text in (("base", BEFORE), ("head", after)):
        (folder / side / "engines").mkdir(parents=True)
        (folder / side / "engines" / "loop.py").write_text(text)
    if new:
        (folder / "head" / "engines" / "new.py").write_text(new)
    found = changed_functions(folder / "base", folder / "head", "engines")
    lines = {
        each.name: (folder / "head" / each.file).read_text().splitlines()[each.line - 1]
        for each in found
    }
    assert all(name == "<module>" or name.split(".")[-1] in line for name, line in lines.items())
    return [each.name for each in found]


@pytest.mark.parametrize(
    ("replaced", "names"),
    [
        ([], []),
        ([("LIMIT = 3", "LIMIT = 4")], ["<module>"]),
        ([("turns = 0", "turns = 1")], ["<module>"]),
        ([("self.turn()", "self.turn(); pass")], ["Loop.run"]),
        ([("return 1", "return 2")], ["Loop.turn.<locals>.inner"]),
        ([("return inner()", "return inner")], ["Loop.turn"]),
        ([("n for n", "n + 1 for n")], ["other"]),
        ([("def other", "def another")], ["<module>", "another"]),
        ([("LIMIT = 3", "LIMIT = 3\n# why\n\n"), ('"""Run."""', '"""Run it."""')], []),
        ([("count: int", "count: float"), ("-> None", "-> object")], []),
        ([("import os\nimport sys", "import sys\nimport os")], []),
        ([("import os\nimport sys", "import sys")], ["<module>"]),
        ([("def other", "def before(): pass\n\ndef other")], ["<module>", "before"]),
        ([("class Empty: pass\n", ""), ("\ndef other", "\nclass Empty: pass\ndef other")], []),
    ],
)
def test_a_change_is_that_of_the_function_whose_code_it_is(tmp_path, replaced, names):
    assert changed(tmp_path, *replaced) == names


PAIR = """
    @property
    def turns(self): return 1

    @turns.setter
    def turns(self, turns): self.{} = turns


def other()"""


@pytest.mark.parametrize(("name", "is_changed"), [("_turns", False), ("_count", True)])
def test_a_getter_and_its_setter_have_one_name_and_are_two_functions(tmp_path, name, is_changed):
    for side, stored in (("base", "_turns"), ("head", name)):
        (tmp_path / side / "engines").mkdir(parents=True)
        source = BEFORE.replace("\n\ndef other()", PAIR.format(stored)) + f"# {side}\n"
        (tmp_path / side / "engines" / "loop.py").write_text(source)
    found = changed_functions(tmp_path / "base", tmp_path / "head", "engines")
    assert [each.name for each in found] == ["Loop.turns"] * is_changed
    assert all(line.first == each.line + 1 for each in found for line in each.statements)
    folders = tmp_path / "base", tmp_path / "head"
    differing = differing_functions(*folders, ["engines/loop.py"])
    assert differing == {("engines/loop.py", each.name) for each in found}


def test_a_new_file_is_new_altogether_and_what_is_no_python_is_left_out(tmp_path):
    assert changed(tmp_path, new="def f(): pass\n") == ["<module>", "f"]
    assert changed(tmp_path / "again", new="def f(:\n") == []


def test_what_one_side_alone_has_differs_too(tmp_path):
    changed(tmp_path, ("def other", "def another"), ("return 1", "return 2"))
    folders = tmp_path / "base", tmp_path / "head"
    for base, head in (folders, reversed(folders)):
        assert differing_functions(base, head, ["engines/loop.py", "engines/none.py"]) == {
            ("engines/loop.py", name)
            for name in ("<module>", "other", "another", "Loop.turn.<locals>.inner")
        }
    assert differing_functions(*folders, ["engines/none.py"]) == frozenset()


STEP = """
def step(self, rows):
    if not rows:
        raise ValueError("no rows")
    for row in rows:
        self.take(row)
    return rows
"""


LOOP, TAKE, RETURN = "    for row in rows:\n", "        self.take(row)\n", "    return rows\n"
HANDLED = "    try:\n        return rows\n    except OSError:\n        n = 1\n"


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (LOOP, f"    if self.late:\n        self.wait()\n{LOOP}", [(5, 5), (6, 6)]),
        (LOOP, f"    if self.late:\n        n = 1\n        raise OSError\n{LOOP}", [(5, 5)]),
        (LOOP, "    for row in list(rows):\n", [(5, 5)]),
        (TAKE, "        self.take(\n            row, 1\n        )\n", [(6, 8)]),
        (TAKE, "        pass\n", [(6, 6)]),
        (RETURN, f"    if rows:\n        pass\n{RETURN}", [(7, 7)]),
        (TAKE, f"{TAKE}        continue\n", []),
        (RETURN, HANDLED, [(10, 10)]),
    ],
)
def test_the_statements_that_differ_are_those_that_serving_may_run(tmp_path, old, new, lines):
    for side, text in (("base", STEP), ("head", STEP.replace(old, new))):
        (tmp_path / side / "engines").mkdir(parents=True)
        (tmp_path / side / "engines" / "step.py").write_text(text)
    (found,) = changed_functions(tmp_path / "base", tmp_path / "head", "engines")
    assert list(found.statements) == lines


def test_to_rename_a_local_variable_is_no_change_and_a_parameter_is(tmp_path):
    assert changed(tmp_path / "a", ("for _ in range(count)", "for turn in range(count)")) == []
    assert changed(tmp_path / "b", ("[n for n in", "[m for m in")) == []
    renamed = ("count: int", "times: int"), ("range(count)", "range(times)")
    assert changed(tmp_path / "c", *renamed) == ["Loop.run"]
