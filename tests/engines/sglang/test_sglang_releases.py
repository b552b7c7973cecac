"""What of a project's own is not vLLM's: where its package lies, what it reads, its locks."""

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from engines.prepared.cache import ReleaseError
from engines.prepared.unpack import unpack_archive
from engines.sglang.host_path import SglangHostPath
from engines.sglang.releases import SGLANG
from engines.vllm.releases import VLLM
from harness.verbs.release_sources import engine_named


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The top folder of a tree as SGLang's repository has it."""
    package = tmp_path / "checkout" / "python" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text('__version__ = "0.5.24.dev1"\n')
    return tmp_path / "checkout"


def test_a_checkout_is_imported_from_its_folder_python(checkout):
    assert SGLANG.layer(str(checkout)) == checkout / "python"
    assert SGLANG.layer(str(checkout / "python")) == checkout / "python"
    assert SGLANG.own_label(str(checkout)) == "0.5.24.dev1"


def test_a_checkout_of_something_else_says_what_it_lacks(tmp_path):
    (tmp_path / "vllm").mkdir()
    with pytest.raises(ReleaseError, match=r"holds no python/sglang/__init__\.py; give the top"):
        SGLANG.layer(str(tmp_path))


@pytest.mark.parametrize(
    ("release", "why"),
    [
        ("0.4.5", "SGLang 0.4.5 is too old: none before 0.4.6 was tried"),
        ("0.5.6", "run gcbench releases sglang 0.5.6 --prepare"),
        ("newest", "is neither a release of SGLang such as 0.5.23"),
    ],
)
def test_a_release_that_is_not_there_is_a_sentence(tmp_path, monkeypatch, release, why):
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=why):
        SglangHostPath.launch("", release)


def test_the_package_names_the_engine():
    assert engine_named("sglang") == engine_named("sglang-hostpath") == "sglang-hostpath"


def test_kernels_that_are_looked_for_are_kept_and_extensions_are_not(tmp_path):
    archive = tmp_path / "sglang-0.5.23-py3-none-any.whl"
    files = ("__init__.py", "kernels/csrc/a.cuh", "_C.so", "static/page.html")
    with ZipFile(archive, "w") as wheel:
        for name in (*map("sglang/{}".format, files), "other/a.py"):
            wheel.writestr(name, "")
    unpack_archive(SGLANG.project, archive, "0.5.23", tmp_path / "layer")
    kept = {p.relative_to(tmp_path / "layer").as_posix() for p in tmp_path.rglob("layer/**/*.*")}
    assert kept == {"sglang/__init__.py", "sglang/kernels/csrc/a.cuh"}


@pytest.mark.parametrize(
    ("releases", "pythons"), [(SGLANG, ["3.11", "3.12"]), (VLLM, ["3.11"])], ids=["sglang", "vllm"]
)
def test_a_lock_names_each_package_once_with_hashes(releases, pythons):
    locks = sorted(releases.project.locks.iterdir())
    assert [each.name for each in locks] == [
        f"{releases.PINNED}-py{python}.txt" for python in pythons
    ]
    for lock in locks:
        text = lock.read_text().replace("\\\n", "")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        for line in lines:
            assert re.fullmatch(r"[\w-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+", line)
        names = [line.partition("==")[0] for line in lines]
        assert len(set(names)) == len(names)
        assert {"torch", "triton", "rapidfuzz"} <= set(names)
