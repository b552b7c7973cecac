"""``gcbench releases``: what cannot be had is named and left out, what can is measured."""

import json
import os

import msgspec
import pytest

from engines.vllm.releases import VLLM
from harness.cli.main import main
from harness.experiment.result import ExperimentResult

SMALL = [
    "--num-requests",
    "16",
    "--batch-size",
    "16",
    "--output-lens",
    "12",
    "--trial-timeout",
    "1200",
]


@pytest.fixture
def gcbench(tmp_path, capfd):
    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["releases", *arguments, "--output", str(tmp_path / "runs")])
        said = capfd.readouterr()
        return status, said.out, " ".join(said.err.split())

    return call


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """An empty cache and no index."""
    monkeypatch.setenv("GCBENCH_CACHE", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ("vlm 1.0", 2, ["'vlm'", "did you mean vllm"]),
        ("vllm 0.9.1", 3, ["left out 0.9.1", "too old", "0.10.2"]),
        ("vllm newest", 3, ["left out newest"]),
        ("vllm 0.11.2 --prepare", 3, ["left out 0.11.2", "cannot be read", "network"]),
        ("vllm --tree .", 3, ["holds no vllm/__init__.py"]),
        ("vllm --tree /no/such/folder", 3, ["/no/such/folder"]),
        ("vllm --gc as_iss", 2, ["'as_iss'", "as_is"]),
        ("vllm --representation list_of_list", 2, ["'list_of_list'", "list_of_lists"]),
        ("vllm all", 2, ["cannot be read", "network"]),
        ("vllm 0.11.2 --last-patches", 2, ["--last-patches", "0.10.2..0.12.0"]),
        ("vllm --repeats 0", 2, ["--repeats 0"]),
        ("vllm --explain", 2, ["--explain"]),
        ("vllm --image releases.gif", 2, ["releases.gif", ".png or .svg"]),
        ("vllm --image /no/such/folder/releases.png", 2, ["--image", "cannot be written"]),
    ],
)
def test_a_sentence_and_a_status_for_what_cannot_be(gcbench, offline, arguments, status, words):
    found, out, err = gcbench(*arguments.split())
    assert found == status, err
    for word in words:
        assert word in err
    assert "Traceback" not in err
    assert not out
    left = [path for path in offline.rglob("*") if path.is_file() and path.name != ".lock"]
    assert left == [], "nothing is half made"


@pytest.mark.slow
def test_a_release_is_measured_beside_one_that_cannot_be_had(pinned_vllm, gcbench, tmp_path):
    tree, table, image = str(VLLM.layer(pinned_vllm)), tmp_path / "table.md", tmp_path / "image.png"
    status, out, err = gcbench(
        "vllm",
        "0.9.1",
        pinned_vllm,
        "--tree",
        tree,
        "--gc",
        "as_is",
        "--axis",
        "setup=lean",
        *SMALL,
        "--json",
        "-",
        "--export",
        f"markdown={table}",
        "--image",
        str(image),
    )
    assert status == 0, err
    assert "left out 0.9.1" in err
    assert "0.9.1" in json.loads(out)["missing_releases"]
    result = msgspec.json.decode(out, type=ExperimentResult)
    assert result.failures == []
    release, path = result.cells
    assert [release.axes["release"], path.axes["release"]] == [pinned_vllm, tree]
    for name, figure in release.metrics.items():
        # From two folders the same files made heaps that differed by one object.
        if figure.kind == "exact" and name != "tracked_heap":
            assert figure.samples == path.metrics[name].samples, name
    assert "Where counts were repeated they were equal in all 2 trials." in result.notes
    assert release.metrics["gc_collections_gen0"].kind == "exact"
    (process,) = release.processes
    assert process.state.freeze_count > process.state.tracked_objects / 2, "vLLM freezes its heap"
    assert release.tokens_sha256 == path.tokens_sha256
    assert pinned_vllm in table.read_text()
    assert image.read_bytes().startswith(b"\x89PNG")
