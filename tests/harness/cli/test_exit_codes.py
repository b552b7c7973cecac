"""Every way out of the command line: a code that says what happened, and at most one sentence."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from full_output import full_standard_output

from harness.cli.exit_codes import MEANINGS
from harness.cli.main import main

ROOT = Path(__file__).parents[3]
LONG = "n" * 300
# From 3.14 on it is 8 MB of stack that end it, not a number of calls.
DEEP = '{"schema": "x", "fields": ' + "[" * 1_000_000 + "]" * 1_000_000 + "}"


def gcbench(arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line as a shell would, with its redirections."""
    return subprocess.run(
        f"{sys.executable} -m harness {arguments}",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | environment,
        check=False,
    )


@pytest.mark.parametrize(
    ("redirected", "words"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")]
)
@pytest.mark.parametrize("arguments", ["list policies", "--help", "list workloads chat --json -"])
def test_standard_output_that_takes_nothing_is_one_sentence(arguments, redirected, words):
    ended = gcbench(f"{arguments} {redirected}")
    assert ended.returncode == 74
    assert ended.stderr == f"gcbench: standard output cannot be written: {words}\n"


def test_a_reader_that_leaves_early_is_neither_a_mistake_nor_worse():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "harness", "list", "policies"]
    ended = subprocess.run(
        command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.parametrize("redirected", ["2> /dev/full", "2>&-"])
def test_a_full_or_closed_standard_error_changes_no_result(redirected):
    ended = gcbench(f"run --gc frezee {redirected}")
    assert (ended.returncode, ended.stdout) == (2, "")
    ended = gcbench(f"list policies {redirected}")
    assert ended.returncode == 0
    assert "collector policy" in ended.stdout


@pytest.mark.slow
def test_a_terminal_that_has_only_ascii_gets_replacements_and_a_program_utf_8(tmp_path):
    path = tmp_path / "workload.toml"
    catalogued = (ROOT / "workloads" / "catalog" / "burst.toml").read_text()
    path.write_text(re.sub(r"(?m)^reason = .*$", 'reason = "µ–▲"', catalogued))
    for encoding, shown in (("ascii", "u-^"), ("utf-8", "µ–▲")):
        environment = {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C"}
        ended = gcbench(f"list workloads {path}", **environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert shown in ended.stdout
        for_a_program = gcbench(f"list workloads {path} --json -", **environment)
        assert "µ–▲" in for_a_program.stdout


@pytest.fixture
def planted(tmp_path):
    """Make ``gcbench list`` raise an error of the test's choice."""

    def plant(error: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "sitecustomize.py").write_text(
            textwrap.dedent(f"""
                import sys
                class Planted:
                    def find_spec(self, name, path=None, target=None):
                        if name == "harness.cli.list_":
                            raise {error}
                sys.meta_path.insert(0, Planted())
            """)
        )
        return gcbench("list", PYTHONPATH=str(tmp_path), TMPDIR=str(tmp_path))

    return plant


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("KeyError('planted')", "KeyError: 'planted'"),
        ("MemoryError", "MemoryError"),
        ("RecursionError('too deep')", "RecursionError: too deep"),
        ("OSError(24, 'Too many open files')", "Too many open files"),
        ("ImportError('no such library')", "ImportError: no such library"),
        ("EOFError('no data left')", "EOFError: no data left"),
        ("BrokenPipeError(32, 'Broken pipe')", "BrokenPipeError: [Errno 32] Broken pipe"),
    ],
)
def test_an_unforeseen_error_is_named_and_its_traceback_kept(planted, error, name):
    ended = planted(error)
    assert ended.returncode == 70
    line = ended.stderr.strip()
    assert line.startswith("gcbench: internal error: ")
    assert "\n" not in line
    assert name in line
    assert "sitecustomize.py:6" in line
    (path,) = re.findall(r"the traceback is in (\S+)$", line)
    assert "Traceback (most recent call last)" in Path(path).read_text()


def test_a_file_that_the_system_refuses_is_named(planted):
    ended = planted("OSError(5, 'Input/output error', '/data/file')")
    assert (ended.returncode, ended.stderr) == (2, "gcbench: /data/file: Input/output error\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "--resume", LONG],
        ["run", "--json", LONG],
        ["run", "--json", "n" * 250],
        ["run", "--output", LONG],
        ["run", "--workload", LONG],
        ["run", "--axis", f"model={LONG}"],
        ["run", "--workload", LONG + ".csv"],
        ["run", "--workload", LONG + ".toml"],
        ["run", "--axis", f"device-profile={LONG}.toml"],
        ["run", "--axis", f"tokenizer={LONG}"],
        ["report", LONG],
        ["gate", "HEAD", "--export", f"markdown={LONG}"],
        ["gate", "HEAD", "--repo", LONG],
        ["dashboard", LONG, "--output", "site"],
        ["nightly", LONG],
        ["list", "workloads", "burst", "--mooncake", LONG + ".jsonl"],
        ["list", "workloads", "burst", "--image", LONG + ".png"],
        ["doctor", "--json", LONG],
    ],
)
def test_a_name_that_is_too_long_is_one_sentence(monkeypatch, tmp_path, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("gcbench: ")
    assert "n" * 250 in line


@pytest.mark.parametrize("arguments", [["report", "results"], ["dashboard", "--output", "site"]])
def test_json_nested_too_deep_is_a_file_that_cannot_be_read(
    monkeypatch, tmp_path, capsys, arguments
):
    monkeypatch.chdir(tmp_path)
    for path in ("trials/001-000-00000000-timing.json", "plan.json", "result.json"):
        file = tmp_path / "results" / "runs" / "experiment" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(DEEP)
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "001-000-00000000-timing.json cannot be read: " in line
    assert "while deserializing an object" in line


@pytest.mark.parametrize("suffix", ["toml", "jsonl"])
def test_a_workload_nested_too_deep_is_one_sentence(tmp_path, capsys, suffix):
    path = tmp_path / f"workload.{suffix}"
    path.write_text(DEEP if suffix == "jsonl" else f"a = {'[' * 10_000}{']' * 10_000}\n")
    assert main(["list", "workloads", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(path) in line


def test_files_are_written_before_a_standard_output_that_is_full(monkeypatch, tmp_path):
    json_path, image = tmp_path / "summary.json", tmp_path / "summary.svg"
    trace = tmp_path / "burst.jsonl"
    written = ["--json", str(json_path), "--image", str(image), "--mooncake", str(trace)]
    with full_standard_output(monkeypatch):
        assert main(["list", "workloads", "burst", *written]) == 74
    assert json.loads(json_path.read_text())
    assert image.read_text().rstrip().endswith("</svg>")
    assert json.loads(trace.read_text().splitlines()[-1])["hash_ids"]


def test_the_exit_codes_are_the_same_in_the_help_and_in_the_docs(capsys):
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    page = (ROOT / "docs" / "running.md").read_text().split("## Exit codes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(str(int(code)), meaning) for code, meaning in MEANINGS.items()]
    for code, meaning in MEANINGS.items():
        assert f"{int(code)} {meaning}" in shown
