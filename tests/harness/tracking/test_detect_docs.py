"""docs/history.md: its triage file is one, its constants are the code's."""

import re
import typing
from pathlib import Path

from harness.tracking import triage, verdict
from harness.tracking.detect import change, evidence, search, weigh

PAGE = Path(__file__).parents[3] / "docs" / "history.md"


def test_the_triage_file_of_the_page_is_one(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "triage.toml"
    path.write_text(text)
    read = triage.load_triage(path)
    assert [len(kind) for kind in (read.acknowledged, read.expected, read.ignored, read.reset)] == [
        1,
        1,
        1,
        1,
    ]


def test_the_page_says_what_the_code_does():
    text = PAGE.read_text()
    for words in (
        f"From {weigh.SUSPECT:g} on",
        f"from {weigh.CERTAIN:g} on",
        f"lasted {weigh.LASTING} nights",
        f"less likely by {search.DRIFT_MARGIN:g}",
        f"fewer than {weigh.LEAST_NIGHTS} points",
        f"the last {evidence.LATEST_NIGHTS} nights",
        f"with {evidence.LEAST_BEFORE} nights",
        f"over {evidence.WINDOW} nights",
    ):
        assert words in text
    for named in (*typing.get_args(verdict.Word), *typing.get_args(change.Certainty)):
        assert f"`{named}`" in text
