"""Temporary folders: gone with who made them, or at the next start of another."""

import subprocess
import sys
import tempfile

import pytest

from harness.files import StoreError
from harness.machine.scratch import scratch_folder

HOLDS = """
import sys
from harness.machine.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "deep").mkdir()
    print(folder, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def other():
    """A process that holds a folder until a line comes."""
    return subprocess.Popen([sys.executable, "-c", HOLDS], stdin=-1, stdout=-1, text=True)


def test_it_is_removed_with_all_that_is_in_it(root):
    with scratch_folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").touch()
    assert not list(root.iterdir())


def test_the_next_process_removes_what_a_killed_one_has_left_and_no_other(root, tmp_path):
    kept = [root / "gcbench-scratch-mine", root / "other"]
    kept[1].mkdir()
    kept[0].symlink_to(kept[1])
    with other() as killed, other() as alive:
        left, held = killed.stdout.readline().strip(), alive.stdout.readline().strip()
        killed.kill()
        killed.wait()
        assert {left, held} <= set(map(str, root.iterdir()))
        with other() as third:
            third.communicate("\n")
        assert set(root.iterdir()) == {*kept, root / held}
        alive.communicate("\n")
    assert set(root.iterdir()) == set(kept)


def test_without_a_place_for_it_that_is_said(root, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(root / "none"))
    with (
        pytest.raises(StoreError, match=r"no temporary folder can be made in .*set TMPDIR"),
        scratch_folder(),
    ):
        pass
