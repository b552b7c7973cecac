"""Bytecode that a full disk has cut short is one sentence, wherever it is imported."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cut_bytecode import cut_bytecode

ROOT = Path(__file__).parents[2]


def run(cache: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPYCACHEPREFIX": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "module", "status", "speaker"),
    [
        (["--help"], "harness/cli/main.py", 2, "gcbench: "),
        (["list", "policies"], "harness/collector/policy.py", 2, "gcbench: "),
        (["trial"], "harness/trial/client.py", 3, ""),
    ],
    ids=["before the command line", "within a command", "in a trial"],
)
@pytest.mark.landing
def test_what_is_cut_short_is_named_and_made_anew(
    tmp_path, monkeypatch, words, module, status, speaker
):
    whole = run(tmp_path, *words)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    cut = Path(importlib.util.cache_from_source(str(ROOT / module)))
    os.truncate(cut, cut.stat().st_size // 2)
    done = run(tmp_path, *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr == (
        f"{speaker}{cut} has been cut short, as by a full disk; remove {cut.parent}, which Python "
        "makes anew\n"
    )
    cut.unlink()
    assert run(tmp_path, *words).returncode == whole.returncode


@pytest.mark.parametrize("error", [EOFError("marshal data too short"), ValueError("bytecode")])
def test_another_error_is_another_matter(error):
    with pytest.raises(type(error)) as raised:
        raise error
    assert cut_bytecode(raised.value) == ""
