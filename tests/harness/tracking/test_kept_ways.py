"""What an engine's ways ran is kept by their flags, whatever becomes of the file."""

import pytest

from harness.tracking.gate.kept_ways import KeptWays

FIRST, SECOND = ("engines/a.py", "f"), ("engines/a.py", "g")


def test_a_way_that_is_tried_again_replaces_what_was_kept_of_it(tmp_path):
    kept = KeptWays(tmp_path / "ways" / "builtin.json")
    assert kept.load() == {}
    kept.save({"--worker process": [FIRST], "--batch-size 2": [FIRST, SECOND]})
    kept.save({"--worker process": [SECOND]})
    assert kept.load() == {"--worker process": {SECOND}, "--batch-size 2": {FIRST, SECOND}}


@pytest.mark.parametrize("content", [b"", b"[]", b'{"way": [["one"]]}', b"\xff"])
def test_a_file_that_says_nothing_is_written_anew(tmp_path, content):
    kept = KeptWays(tmp_path / "builtin.json")
    kept.path.write_bytes(content)
    assert kept.load() == {}
    kept.save({"way": [FIRST]})
    assert kept.load() == {"way": {FIRST}}


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    (tmp_path / "file").touch()
    kept = KeptWays(tmp_path / "file" / "builtin.json")
    kept.save({"way": [FIRST]})
    assert kept.load() == {}
