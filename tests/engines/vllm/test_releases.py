"""A release is prepared whole or not at all, and what goes wrong is said in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_index import sdist, vllm_files, wheel

from engines.cache import cache_root
from engines.prepared.cache import ReleaseError
from engines.vllm.releases import VLLM

pytestmark = pytest.mark.usefixtures("cache")
ROOT = Path(__file__).parents[3]


def refusal(release: str) -> str:
    """The one sentence with which `VLLM.prepare_release` refuses."""
    with pytest.raises(ReleaseError) as caught:
        VLLM.prepare_release(release, lambda said: None)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def left(cache: Path) -> set[str]:
    """What is in the cache besides the base and the lock."""
    return {path.name for path in cache.iterdir() if not path.name.startswith("base-")} - {".lock"}


def test_a_prepared_release_is_what_python_imports(index, base):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    said: list[str] = []
    folder = VLLM.prepare_release("0.11.0", said.append)
    assert folder == VLLM.layer("0.11.0") == VLLM.layer("v0.11")
    assert said == ["downloading vLLM 0.11.0 (0 MB)", "importing vLLM 0.11.0"]
    script = "import vllm, importlib.metadata as m; print(vllm.__file__, m.version('vllm'))"
    done = subprocess.run(
        [base, "-P", "-c", script],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(folder / "vllm" / "__init__.py"), "0.11.0"]


def test_byte_code_is_left_in_the_cache_whatever_the_shell_says(index, base, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    folder = VLLM.prepare_release("0.11.0", lambda said: None)
    assert list(folder.glob("vllm/engine/__pycache__/arg_utils.*.pyc"))


def test_what_is_prepared_needs_no_network(index, base):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    VLLM.prepare_release("0.11.0", lambda said: None)
    index.requests.clear()
    said: list[str] = []
    assert VLLM.prepare_release("0.11.0", said.append) == VLLM.layer("0.11.0")
    assert said == index.requests == []


def test_what_is_not_prepared_says_how(cache):
    with pytest.raises(ReleaseError, match=r"run gcbench releases vllm 0\.11\.2 --prepare"):
        VLLM.layer("0.11.2")


def test_a_release_without_sdist_comes_from_its_wheel(index, base):
    files = vllm_files(**{"vllm/_C.abi3.so": "machine code", "other/a.py": ""})
    index.add("vllm-0.15.0-cp38-abi3-manylinux1_x86_64.whl", wheel("vllm", "0.15.0", files))
    folder = VLLM.prepare_release("0.15.0", lambda said: None)
    assert (folder / "vllm-0.15.0.dist-info" / "METADATA").exists()
    assert not (folder / "vllm" / "_C.abi3.so").exists()
    assert not (folder / "other").exists()


def test_the_sdist_comes_before_the_wheel(index, base):
    index.add("vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl", wheel("vllm", "0.11.0", vllm_files()))
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    VLLM.prepare_release("0.11.0", lambda said: None)
    assert not [name for name in index.requests if name.endswith(".whl")]


def test_a_download_cut_short_leaves_nothing(index, base, cache):
    file = index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    index.cut = file.name
    assert "downloading vLLM 0.11.0 failed" in refusal("0.11.0")
    assert left(cache) == set()
    index.cut = ""
    VLLM.prepare_release("0.11.0", lambda said: None)
    assert left(cache) == {"0.11.0"}


def test_a_wrong_hash_leaves_nothing(index, base, cache):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()), sha256="0" * 64)
    assert "does not have the hash that the index gives" in refusal("0.11.0")
    assert left(cache) == set()


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_damaged_archive_without_a_hash_leaves_nothing(index, base, cache, kept):
    whole = sdist("0.11.0", vllm_files(**{"vllm/big.py": os.urandom(9999).hex()}))
    index.add("vllm-0.11.0.tar.gz", whole[: len(whole) * kept // 3], sha256="")
    assert "vllm-0.11.0.tar.gz is cut short or damaged" in refusal("0.11.0")
    assert left(cache) == set()


def test_a_file_that_is_gone_from_the_index(index, base, cache):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files())).unlink()
    assert "404" in refusal("0.11.0")
    assert left(cache) == set()


def test_an_archive_without_vllm(index, base, cache):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", {"vllm-0.11.0.py": ""}))
    assert "holds no vllm/__init__.py" in refusal("0.11.0")
    assert left(cache) == set()


def test_an_unknown_version_names_the_nearest(index, base, cache):
    for version in ("0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.33.0", "0.34.0rc1"):
        index.add(f"vllm-{version}.tar.gz", sdist(version, vllm_files()))
    said = refusal("0.11.1")
    assert "did you mean 0.10.2, 0.11.0, 0.11.2, 0.12.0? (supported are 0.10.2 to 0.33.0)" in said
    assert left(cache) == set()
    assert VLLM.known_versions() == ["0.33.0", "0.12.0", "0.11.2", "0.11.0", "0.10.2"]


def test_no_network_and_a_cold_cache(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    assert "http://127.0.0.1:1/simple cannot be read" in refusal("0.11.0")
    assert left(cache) == set()


def test_an_index_that_has_no_vllm(index, cache):
    said = refusal("0.11.0")
    assert index.url in said
    assert "404" in said


@pytest.mark.parametrize("section", ["global", "install"])
def test_pips_own_settings_name_the_index(index, base, monkeypatch, tmp_path, section):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    monkeypatch.delenv("PIP_INDEX_URL")
    (tmp_path / "pip.conf").write_text(f"[{section}]\nindex-url = {index.url}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert VLLM.known_versions() == ["0.11.0"]


def test_further_sources_count(index, base, monkeypatch, tmp_path):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "vllm-0.12.0.tar.gz").write_bytes(sdist("0.12.0", vllm_files()))
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / 'links'} {tmp_path / 'nowhere'}")
    assert VLLM.known_versions() == ["0.12.0", "0.11.0"]
    VLLM.prepare_release("0.12.0", lambda said: None)
    assert (tmp_path / "links" / "vllm-0.12.0.tar.gz").exists(), "a user's file is not moved"


@pytest.mark.parametrize("incompressible", [True, False], ids=["download", "unpack"])
def test_a_full_disk_leaves_nothing(index, base, cache, no_file_above, incompressible):
    big = os.urandom(200_000).hex() if incompressible else "#" * 400_000
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files(**{"vllm/big.py": big})))
    with no_file_above(100_000):
        said = refusal("0.11.0")
    assert f"cannot write to {cache}" in said
    assert "GCBENCH_CACHE" in said
    assert left(cache) == set()


def test_a_cache_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "file"))
    assert f"cannot write to {tmp_path / 'file' / 'vllm'}" in refusal("0.11.0")


def test_killed_before_the_rename_it_is_done_again(index, base, cache):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    script = (
        "import os, pathlib\n"
        "from engines.vllm.releases import VLLM\n"
        "pathlib.Path.rename = lambda self, target: os._exit(9)\n"
        "VLLM.prepare_release('0.11.0', print)"
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert killed.returncode == 9
    assert left(cache) == {".0.11.0.partial"}
    with pytest.raises(ReleaseError, match="not prepared"):
        VLLM.layer("0.11.0")
    VLLM.prepare_release("0.11.0", lambda said: None)
    assert left(cache) == {"0.11.0"}


def test_a_second_process_waits_for_the_first(index, base):
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", vllm_files()))
    script = (
        "from engines.prepared.cache import only_writer\n"
        "from engines.vllm.releases import VLLM\n"
        "with only_writer(VLLM.project, print):\n"
        "    print('held', flush=True)\n"
        "    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        said: list[str] = []

        def say(sentence: str) -> None:
            said.append(sentence)
            if sentence.startswith("waiting for another process"):
                assert index.requests == []
                first.communicate("\n")

        VLLM.prepare_release("0.11.0", say)
    assert said[0].startswith("waiting")
    assert said[1:] == ["downloading vLLM 0.11.0 (0 MB)", "importing vLLM 0.11.0"]


def test_a_missing_package_is_named_and_adding_it_is_enough(index, base, cache):
    files = vllm_files(**{"vllm/__init__.py": "import not_here.at_all"})
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", files))
    assert f"{base} -m pip install --no-deps not_here" in refusal("0.11.0")
    with pytest.raises(ReleaseError, match="not prepared"):
        VLLM.layer("0.11.0")
    # As pip would have put it, for a base whose packages are elsewhere.
    (cache / "0.11.0" / "not_here").mkdir()
    (cache / "0.11.0" / "not_here" / "at_all.py").touch()
    VLLM.prepare_release("0.11.0", lambda said: None)
    assert VLLM.layer("0.11.0") == cache / "0.11.0"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("raise RuntimeError('torch is\\ntoo old')", "too old"),
        ("import vllm.nothing", "ModuleNotFoundError: No module named 'vllm.nothing'"),
        ("import os; os.abort()", "exit status -6"),
        ("raise SystemExit(3)", "exit status 3"),
    ],
)
def test_what_breaks_the_import_is_said(index, base, line, why):
    files = vllm_files(**{"vllm/engine/arg_utils.py": line})
    index.add("vllm-0.11.0.tar.gz", sdist("0.11.0", files))
    assert f"cannot be imported in {base.parents[1]}: {why}" in refusal("0.11.0")


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"GCBENCH_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"GCBENCH_CACHE": "~/a", "HOME": "/c"}, "/c/a"),
        ({"GCBENCH_CACHE": "", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/gcbench"),
        ({"GCBENCH_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/c"}, "/c/.cache/gcbench"),
    ],
)
def test_where_the_cache_is(monkeypatch, variables, root):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == Path(root)


def test_a_relative_cache_stays_where_it_was(monkeypatch, tmp_path):
    monkeypatch.setenv("GCBENCH_CACHE", "here")
    monkeypatch.chdir(tmp_path)
    assert cache_root() == tmp_path / "here"


def test_importing_releases_loads_nothing_heavy(fresh_interpreter):
    loaded = fresh_interpreter(
        "import sys, json, engines.vllm.releases\n"
        "print(json.dumps(sorted({'torch', 'vllm', 'unearth', 'numpy'} & sys.modules.keys())))"
    )
    assert loaded == []


def test_the_label_of_a_version_is_its_spelling_on_the_index():
    assert VLLM.own_label("v0.11") == "0.11.0"
