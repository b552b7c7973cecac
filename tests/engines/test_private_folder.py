"""Folders for sockets: of one process and one user, and short enough for a socket's path."""

import stat
import tempfile
from pathlib import Path

from engines.private_folder import private_folder


def test_folders_are_of_one_process_and_one_user():
    folders = [Path(private_folder("test")) for _ in range(2)]
    assert folders[0] != folders[1]
    for folder in folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.rmdir()


def test_a_temporary_folder_that_is_too_deep_for_a_socket_is_not_used(monkeypatch, tmp_path):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = Path(private_folder("test"))
    assert folder.parent == Path("/tmp")
    folder.rmdir()
