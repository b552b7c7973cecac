"""The docs as a site: built strict, offline, with schemas that what is stored keeps to."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        check=True,
        cwd=ROOT,
    )
    return folder


def test_no_page_loads_anything_from_the_network(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)", text)
        loaded += re.findall(r"<link\b[^>]*rel=\"(?!canonical|next|prev)[^>]*href=\"([^\"]+)", text)
        assert not [each for each in loaded if re.match(r"(https?:)?//", each)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text()), style


@pytest.mark.landing
def test_stored_results_keep_to_the_published_schemas(site):
    checked = 0
    for path in sorted((ROOT / "results" / "published").rglob("*.json")):
        stored = json.loads(path.read_text())
        name = stored.get("schema", "").replace("/", "-")
        schema = site / "reference" / "schemas" / f"{name}.json"
        if schema.exists():
            jsonschema.validate(stored, json.loads(schema.read_text()))
            checked += 1
    assert checked > 5


def test_every_command_has_a_section(site):
    from harness.cli.main import cli

    text = (site / "reference" / "commands.html").read_text()
    assert all(f'id="gcbench-{name}"' in text for name in cli.list_commands(None))
