"""A cache, an index and a base of one test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_index import LocalIndex, serve

from engines.vllm.releases import VLLM


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Where vLLM is prepared; empty, and so are pip's settings."""
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return VLLM.project.folder


@pytest.fixture
def index(cache, tmp_path, monkeypatch) -> Iterator[LocalIndex]:
    with serve(tmp_path / "index") as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


@pytest.fixture
def base(cache) -> Path:
    """A base with nothing but the standard library; its Python."""
    python = VLLM.base_folder() / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(Path(sys.executable).resolve())
    (VLLM.base_folder() / ".complete").touch()
    return python
