"""A folder that holds vLLM, at any commit, is a release of its own."""

from pathlib import Path

import pytest
from local_index import vllm_files

from engines.prepared.cache import ReleaseError
from engines.vllm.releases import VLLM

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "code" / "my-vllm"
    for name, text in vllm_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_path_is_its_own_layer_however_it_is_written(source, monkeypatch):
    monkeypatch.chdir(source.parent)
    monkeypatch.setenv("HOME", str(source.parents[1]))
    for text in (str(source), "my-vllm", "./my-vllm/", "~/code/my-vllm"):
        assert VLLM.layer(text) == source


def test_a_path_is_checked_each_time_and_not_marked(source, base, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    said: list[str] = []
    assert VLLM.prepare_release(str(source), said.append) == source
    assert said == ["importing vLLM my-vllm"]
    assert not list(source.rglob(".checked*")) + list(source.rglob("*.pyc"))
    (source / "vllm" / "engine" / "arg_utils.py").write_text("import not_here")
    with pytest.raises(ReleaseError, match="pip install --no-deps not_here"):
        VLLM.prepare_release(str(source), said.append)


def test_a_path_is_called_what_vllm_there_calls_itself(source):
    assert VLLM.own_label(str(source)) == "my-vllm"
    (source / "vllm" / "_version.py").write_text(
        "version: str\n__version__ = version = '0.11.3.dev5+gabc'\n__version_tuple__ = (0, 11)\n"
    )
    assert VLLM.own_label(str(source)) == "0.11.3.dev5+gabc"


@pytest.mark.parametrize(
    "use", [VLLM.layer, VLLM.own_label, lambda path: VLLM.prepare_release(path, print)]
)
def test_a_path_that_holds_no_vllm(tmp_path, use):
    (tmp_path / "vllm").mkdir()
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ReleaseError, match=f"{path} holds no vllm/__init__.py"):
            use(str(path))


@pytest.mark.parametrize(
    "use", [VLLM.layer, VLLM.own_label, lambda text: VLLM.prepare_release(text, print)]
)
def test_what_is_neither_a_version_nor_a_path(use):
    with pytest.raises(ReleaseError, match="'newest' is neither a release of vLLM such as"):
        use("newest")
