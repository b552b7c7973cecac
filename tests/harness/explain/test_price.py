"""What a remedy would touch: makers, readers and what they do, in a tree that is written here."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness.explain.price import prices
from harness.explain.result import Price
from harness.explain.sites import LineOfSites

FILES = {
    "engine/made.py": """\
        class Block:
            pass

        class Output:
            def __init__(self, token_ids, more):
                self.token_ids = token_ids

        def sample(ids):
            return [each for each in ids]  # the list

        def step(ids, scheduler):
            tokens = sample(ids)
            scheduler.update(Output(token_ids=tokens, more=0))
            scheduler.block = Block()  # the block

        def other():
            return Block()

        def joined(a, b):
            return a + b  # the sum

        def joins():
            return len(joined([], []))
        """,
    "engine/read.py": """\
        class Scheduler:
            def update(self, output):
                if not output.token_ids:
                    return
                last = output.token_ids[-1]
                mine = output.token_ids
                del mine[4:]
                mine.clear()
                self.count(output.token_ids, last)

            def count(self, tokens, last):
                self.num = len(tokens)
                tokens += [last]
                for each in tokens:
                    if each:
                        self.num += 1

            def never(self, token_ids):
                return len(token_ids), self.block
        """,
    "elsewhere/read.py": "def read(output):\n    return len(output.token_ids)\n",
    "engine/broken.py": "def token_ids(:\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
    return tmp_path


def lines_with(file: str, *texts: str) -> list[tuple[str, int]]:
    lines = list(enumerate(dedent(FILES[file]).splitlines(), 1))
    return [(file, next(n for n, line in lines if text in line)) for text in texts]


def price(tree: Path, mark: str, *types: str, share: float = 0.5) -> list[Price]:
    ((file, line),) = lines_with("engine/made.py", mark)
    of = LineOfSites(
        file=file,
        line=line,
        types=list(types),
        share=share,
        share_error=0.0,
        pause_share=0.0,
        promoted=0,
        retained=0,
    )
    return prices([of], ["", str(tree)], ["engine"])


def test_readers_are_found_under_each_name_and_what_they_do_is_told(tree):
    (found,) = price(tree, "# the list", "list")
    assert found.made == lines_with("engine/made.py", "# the list")
    read = "engine/read.py"
    hazards = {
        ".clear()": ["mine.clear()"],
        "change in place": ["tokens += "],
        "del x[…]": ["del mine"],
        "element": ["last = "],
        "len": ["self.num = len"],
        "truth value": ["if not", "if each"],
    }
    assert found.hazards == {what: lines_with(read, *texts) for what, texts in hazards.items()}
    assert found.read == [
        *lines_with("engine/made.py", "self.token_ids", "tokens = sample", "Output(token_ids"),
        *lines_with(
            read,
            "if not",
            "last = ",
            "mine = ",
            "del mine",
            "mine.clear()",
            "self.count",
            "self.num = len",
            "tokens += ",
            "for each",
            "if each",
        ),
    ]
    assert found.num_files == 2


def test_of_a_class_all_calls_make_its_objects_and_no_type_is_relied_on(tree):
    (found,) = price(tree, "# the block", "engine.made.Block")
    assert found.made == lines_with("engine/made.py", "# the block", "return Block()")
    assert found.read == lines_with("engine/read.py", "return len(token_ids), self.block")
    assert found.hazards == {}


def test_what_an_operator_makes_is_followed(tree):
    (found,) = price(tree, "# the sum", "list")
    assert found.read == lines_with("engine/made.py", "len(joined")
    assert found.hazards == {"len": found.read}


def test_what_has_no_source_or_hardly_a_share_has_no_price(tree):
    assert price(tree, "# the list", "list", share=0.001) == []
    (tree / "engine" / "made.py").unlink()
    assert price(tree, "# the list", "list") == []
