"""docs/history.md: its lines run, its columns are those that there are."""

import doctest
import re
import shutil
from pathlib import Path
from typing import get_args

from harness.tracking import history
from harness.tracking.frames import FRAME_COLUMNS
from harness.tracking.raw_trials import FAILURE_COLUMNS, TRIAL_COLUMNS
from harness.tracking.verdict import Word

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "history.md"


def test_the_lines_of_the_page_run(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "tests" / "golden" / "asv", tmp_path / "results" / "asv")
    monkeypatch.chdir(tmp_path)
    lines = "".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(lines, {}, PAGE.name, str(PAGE), 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    found = runner.run(test, out=said.append)
    assert found.attempted > 10
    assert found.failed == 0, "".join(said)


def test_the_page_names_every_column_and_verdict():
    text = PAGE.read_text()
    figures, trials = text[text.index("**`figures`") :].split("**`trials`", 1)
    verdicts = text[text.index("## What is said") :]
    names = {
        name
        for cell in re.findall(r"^\| (`.*?) \|", figures, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }
    assert names == set(FRAME_COLUMNS)
    own = {
        "metric",
        "value",
        "unit",
        "direction",
        "kind",
        "code_commit",
        "invalid",
        "reason",
        "experiment",
        "round",
        "place",
        "mode",
        "seed",
    }
    assert own == (set(TRIAL_COLUMNS) | set(FAILURE_COLUMNS)) & own
    assert all(f"`{name}`" in trials for name in own)
    assert all(f"`{verdict}`" in verdicts for verdict in get_args(Word))
    assert all(f"**`{name}`**" in text for name in history.History._fields)
