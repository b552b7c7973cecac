"""Every relative link of README and docs leads to a file and a heading that are there."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from pages import PAGES, ROOT, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    wrong = []
    for target in links(page):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, anchor = urldefrag(unquote(target))
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(target)
    assert not wrong


def test_each_page_can_be_reached_from_the_index():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / target.split("#")[0]).resolve() for target in links(index)}
    assert set((ROOT / "docs").glob("*.md")) - {index} <= linked


def test_pages_named_in_the_code_are_there():
    """``docs/NAME.md``, as messages, comments and the table of metrics name it."""
    packages = ("harness", "engines", "workloads", "dashboards", "gcbench", "benchmarks", "tests")
    files = [file for each in packages for file in (ROOT / each).rglob("*.py")]
    for file in (*files, *ROOT.glob("*.toml"), ROOT / "Makefile"):
        for name in re.findall(r"(?<![\w/])docs/[a-z0-9-]+\.md", file.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{file}: {name}"


def test_the_tree_in_contributing_is_the_one_that_git_has():
    tree = (ROOT / "CONTRIBUTING.md").read_text().split("## The house")[1].split("```")[1]
    named = dict(re.findall(r"^([a-z]+)/(.*\n(?: .*\n)*)", tree, re.M))
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    files = [file for file in listed if not file.startswith(".")]
    assert named.keys() == {file.split("/")[0] for file in files if "/" in file}
    for package in ("workloads", "harness", "dashboards"):
        rooms = set(re.findall(r"^  ([a-z]+)/", named[package], re.M))
        assert rooms == {
            file.split("/")[1]
            for file in files
            if re.fullmatch(rf"{package}/\w+/__init__\.py", file)
        }


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200
