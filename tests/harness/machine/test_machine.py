"""What a figure was measured on."""

import getpass
import os
import platform
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.machine.describe import Machine, code_identity, describe


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Tester", "-c", "user.email=tester@example.invalid"]
    answer = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


@pytest.fixture
def checkout(tmp_path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("ignored/\n")
    (tmp_path / "code.py").write_text("x = 1\n")
    (tmp_path / "ignored").mkdir()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_description_is_plain_json_without_names_of_hosts_or_users():
    machine = describe()
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine
    words = str(msgspec.structs.replace(machine, kernel=""))
    assert str(Path.home()) not in words
    for name in (platform.node(), getpass.getuser()):
        assert len(name) < 5 or name not in words  # a short one may be part of any word


def test_description_agrees_with_this_process():
    machine = describe()
    assert machine.python == platform.python_version()
    assert 1 <= machine.cores_usable <= machine.cores_logical
    assert machine.memory_bytes > 1 << 28
    assert machine.torch.startswith("2.")


def test_description_imports_no_torch():
    script = (
        "import sys, harness.machine.describe as m; m.describe(); print('torch' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"


def test_fewer_cores_are_seen():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system has no affinity")
    script = (
        "import os; from harness.machine.describe import cores_usable\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(cores_usable())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "1"


def test_code_identity_names_the_commit_and_says_dirty(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    assert code_identity(checkout) == (str(checkout.resolve()), head)
    (checkout / "new.py").touch()
    assert code_identity(checkout)[1] == f"{head}+dirty"
    (checkout / "new.py").unlink()
    (checkout / "code.py").write_text("x = 2\n")
    assert code_identity(checkout)[1] == f"{head}+dirty"


def test_code_that_the_checkout_does_not_track_has_no_commit(checkout, tmp_path_factory):
    assert code_identity(checkout / "ignored")[1] == ""
    assert code_identity(tmp_path_factory.mktemp("bare"))[1] == ""
    assert code_identity(checkout / "missing")[1] == ""


def test_code_identity_within_a_git_hook(checkout, tmp_path_factory, monkeypatch):
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "--quiet")
    head = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert code_identity(checkout)[1] == head


def test_without_git_there_is_no_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert code_identity(checkout)[1] == ""
