"""What the engines of another tree lack is named, where it was the harness that asked for it."""

from pathlib import Path

import pytest

import harness
from engines.builtin.engine import Engine
from harness.other_engines import other_engines

HARNESS = Path(harness.__file__).parent
OURS, THEIRS = str(HARNESS / "trial" / "run.py"), str(HARNESS.parent / "engines" / "run.py")


def raised_in(file: str, line: str) -> BaseException:
    with pytest.raises((ImportError, AttributeError)) as caught:
        exec(compile(line, file, "exec"), {"Engine": Engine, "one": Engine.__new__(Engine)})
    return caught.value


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("from engines.protocol import Gone", ("engines.protocol.Gone", "a name of engines.")),
        ("import engines.gone", ("engines.gone", "engines.gone")),
        ("Engine.wire_minutes", ("Engine.wire_minutes", "Engine.wire_minutes")),
        ("one.wire_minutes", ("Engine.wire_minutes", "Engine.wire_minutes")),
    ],
)
def test_what_they_lack_is_named(line, lacks):
    sentence = other_engines(raised_in(OURS, line))
    assert sentence.startswith(tuple(f"its engines lack {each}" for each in lacks))
    assert sentence.endswith("measure it with the gcbench of that commit")
    assert other_engines(raised_in(THEIRS, line)) == "", "that is a fault of the engines' own"


@pytest.mark.parametrize("line", ["import harness.gone", "from os import gone", "(3).gone"])
def test_what_others_lack_is_another_matter(line):
    assert other_engines(raised_in(OURS, line)) == ""
