"""asv's JSON: its comments, its NaN, its versions, and what cannot be read in one sentence."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.files import StoreError
from harness.tracking.asv.json_files import read_json, without_comments

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"/*\\,]}\n', max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet='/*",', max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def _last_comma(line: str, following: str) -> str:
    is_last = following.strip()[:1] in ("]", "}") and line.strip()[-1] not in "[{"
    return "," if is_last else ""


@given(VALUES, st.sampled_from(['// no, [}"', "/* a */", "/* a\n // ] */", ""]))
def test_comments_and_last_commas_change_nothing(value, comment):
    lines = json.dumps(value, indent=1).splitlines()
    text = "\n".join(
        f"{line}{_last_comma(line, following)} {comment}"
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
    )
    plain = without_comments(text)
    assert json.loads(plain) == value
    assert plain.count("\n") == text.count("\n"), "an error names the line that the user sees"


@given(VALUES)
def test_json_without_comments_stays_as_it_is(value):
    text = json.dumps(value, indent=1)
    assert without_comments(text) == text


def test_comments_are_read_as_asv_reads_them():
    json5 = pytest.importorskip("json5")
    text = '{"a": "http://x", // one\n "b": [1, /* two */ 2,], /* three\n */ "c": "/* no */",}'
    assert json.loads(without_comments(text)) == json5.loads(text)


def test_nan_and_infinity_pass(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"version": 2, "a": [NaN, Infinity, -Infinity, 1.5]}')
    found = read_json(path, 2)
    assert found.keys() == {"a"}
    assert str(found["a"]) == "[nan, inf, -inf, 1.5]"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"version": 2, "a": [1', "cut short or not JSON"),
        (b"", "cut short or not JSON"),
        (b"not JSON", "cut short or not JSON"),
        (b'{"version": 2, "a": "\xff"}', "cut short or not JSON"),
        (b"[" * 100_000, "cut short or not JSON"),
        (b"[1, 2]", "says no version"),
        (b'{"a": 1}', "says no version"),
        (b'{"version": 1}', "asv's format 1, this gcbench reads 2"),
        (b'{"version": "2"}', "asv's format '2'"),
        (b'{"version": 2} // a comment', "cut short or not JSON"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, content, says):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=says) as caught:
        read_json(path, 2)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(StoreError, match="no regular file"):
        read_json(tmp_path / "a.json", 2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.symlink_to(path), "symbolic links"),
    ],
)
def test_what_the_system_refuses_is_one_sentence(tmp_path, make, says):
    make(tmp_path / "a.json")
    with pytest.raises(StoreError, match=says):
        read_json(tmp_path / "a.json", 2)
