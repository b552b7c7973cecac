"""The tests near a change are those that lead to it, and it is known what the change is."""

import subprocess
from pathlib import Path

import pytest
from touched import changed_files, chosen_base, git, sources, touched

FILES = {
    "harness/low.py": "",
    "harness/high.py": "def f():\n    from harness.low import x\n",
    "harness/apart.py": "",
    "harness/page.html": "",
    "harness/room/__init__.py": "",
    "harness/room/inner.py": "",
    "harness/__main__.py": "import harness.apart\n",
    "tests/harness/helper.py": "import harness.high\n",
    "tests/harness/conftest.py": "",
    "tests/harness/test_high.py": "import helper\n",
    "tests/harness/test_low.py": "from harness import low\n",
    "tests/harness/test_page.py": 'PAGE = "page.html"\n',
    "tests/harness/test_inner.py": "from harness.room.inner import x\n",
    "tests/harness/test_started.py": 'COMMAND = ["python", "-m", "harness"]\n',
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    return tmp_path


def commit(root: Path, when: str) -> str:
    words = [
        "git",
        "-c",
        "user.name=n",
        "-c",
        "user.email=e",
        "commit",
        "--quiet",
        "--message=m",
        "--allow-empty",
    ]
    environment = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
    git(root, "add", "--all")
    subprocess.run(words, cwd=root, check=True, env=environment)
    return git(root, "rev-parse", "HEAD")


def names_of(root: Path, *changed: str) -> list[str]:
    return [path.stem.removeprefix("test_") for path in touched(root, sources(root), changed)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(["harness/low.py"], ["low", "high"], id="the nearest first"),
        pytest.param(
            ["harness/low.py", "harness/apart.py"], ["low", "started", "high"], id="of two"
        ),
        pytest.param(["tests/harness/helper.py"], ["high"], id="a helper of tests"),
        pytest.param(["harness/apart.py"], ["started"], id="what is started by name"),
        pytest.param(["harness/room/__init__.py"], ["inner"], id="a package around"),
        pytest.param(["harness/page.html"], ["page"], id="a file by its name"),
        pytest.param(
            ["tests/harness/conftest.py"],
            ["high", "inner", "low", "page", "started"],
            id="what all have",
        ),
        pytest.param(["harness/gone.py", "notes.txt"], [], id="nobody's"),
    ],
)
def test_a_change_touches_who_leads_to_it(repository, changed, expected):
    assert names_of(repository, *changed) == expected


def test_what_changed_is_also_what_git_does_not_know(repository):
    base = commit(repository, "2026-01-01T00:00:00Z")
    (repository / "harness/low.py").write_text("x = 1\n")
    (repository / "harness/new.py").write_text("")
    (repository / "harness/apart.py").unlink()
    assert changed_files(repository, base) == [
        "harness/apart.py",
        "harness/low.py",
        "harness/new.py",
    ]


def test_the_base_is_what_passed_last_or_a_day_old(repository, tmp_path_factory):
    passed = tmp_path_factory.mktemp("kept") / "passed"
    first = commit(repository, "2026-01-01T00:00:00Z")
    assert chosen_base(repository, "", passed) == (first, "the first there is")
    second = commit(repository, "2026-01-02T12:00:00Z")
    third = commit(repository, "2026-01-02T13:00:00Z")
    why = "the last from a day before HEAD, since none is known to have passed"
    assert chosen_base(repository, "", passed) == (first, why)
    passed.write_text("0" * 40)
    assert chosen_base(repository, "", passed) == (first, why), "history does not lead there"
    passed.write_text(f"{second}\n")
    assert chosen_base(repository, "", passed) == (second, "the last that passed here")
    assert chosen_base(repository, "HEAD", passed) == (third, "as asked")
    with pytest.raises(subprocess.CalledProcessError):
        chosen_base(repository, "nowhere", passed)


@pytest.mark.slow
def test_tests_named_after_what_changed_come_first():
    """Though more imports lead to the command line's than to others."""
    root = Path(__file__).parents[1]
    found = touched(root, sources(root), ["harness/tracking/gate/timing.py"])
    assert {"test_gate.py", "test_cli_gate.py", "test_gate_leaks.py"} <= {
        path.name for path in found[:60]
    }
