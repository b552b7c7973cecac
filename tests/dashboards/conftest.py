"""A planted history and the site that is made of it, once for all tests."""

import shutil
from pathlib import Path

import pytest
from planted import HOSTILE_MACHINE, Planted, plant

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("small"), commits=8)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Planted:
    folder = tmp_path_factory.mktemp("hostile")
    return plant(folder, commits=4, machine=HOSTILE_MACHINE, hostile=True)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; tests are skipped where there is none.

    Not for the session: other tests want no process left.
    """
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; on Debian: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def asv(tmp_path, small) -> Path:
    """A copy of the small history's results to spoil."""
    shutil.copytree(small.results, tmp_path / "results")
    return tmp_path / "results"
