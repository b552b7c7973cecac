"""A planted history and the site that is made of it, once for all tests."""

import shutil
from pathlib import Path

import pytest
from planted import HOSTILE_MACHINE, Planted, plant


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Planted:
    return plant(tmp_path_factory.mktemp("small"), commits=8)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Planted:
    folder = tmp_path_factory.mktemp("hostile")
    return plant(folder, commits=4, machine=HOSTILE_MACHINE, hostile=True)


@pytest.fixture
def asv(tmp_path, small) -> Path:
    """A copy of the small history's results to spoil."""
    shutil.copytree(small.results, tmp_path / "results")
    return tmp_path / "results"
