"""Weights: shares that add up to the whole, and files that are not what they should be."""

import json
from pathlib import Path

import pytest
import torch
from hostile_values import NO_FILES
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from engines.builtin.model.config import ModelSource, load_model
from engines.builtin.model.weights import Weights, cut

CPU = torch.device("cpu")
CONFIG = load_model("opt-125m").config


def random_weights(seed: int = 0, dtype: torch.dtype = torch.float32) -> Weights:
    return Weights(ModelSource(CONFIG, None), CPU, dtype, seed)


def weights_in(folder: Path, dtype: torch.dtype = torch.float32) -> Weights:
    return Weights(ModelSource(CONFIG, folder), CPU, dtype, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tensors = {
        "model.a.weight": torch.arange(35.0).reshape(5, 7),
        "b.weight": torch.arange(4.0).bfloat16(),
        "model.c.weight": torch.arange(4),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 9])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("is_random", [True, False])
def test_shares_are_the_whole_and_then_zeros(folder, size, dimension, is_random):
    weights = random_weights() if is_random else weights_in(folder)
    whole = weights.take("model.a.weight", (5, 7))
    shares = [
        weights.take("model.a.weight", (5, 7), part=(dimension, rank, size)) for rank in range(size)
    ]
    assert len({share.shape for share in shares}) == 1
    together = torch.cat(shares, dimension)
    assert together.shape[dimension] < whole.shape[dimension] + size
    assert torch.equal(together.narrow(dimension, 0, whole.shape[dimension]), whole)
    filling = together.shape[dimension] - whole.shape[dimension]
    assert not together.narrow(dimension, whole.shape[dimension], filling).any()


@given(length=st.integers(1, 40), size=st.integers(1, 9))
def test_cut_copies_only_where_zeros_are_needed(length, size):
    whole = torch.arange(1.0, length + 1)
    shares = [cut(whole, (0, rank, size)) for rank in range(size)]
    together = torch.cat(shares)
    assert together.tolist() == whole.tolist() + [0.0] * (-length % size)
    if length % size == 0:
        base = whole.untyped_storage().data_ptr()
        assert {share.untyped_storage().data_ptr() for share in shares} == {base}


def test_a_random_share_keeps_no_more_than_itself_alive():
    share = random_weights().take("fc1.weight", (8, 8), part=(0, 1, 4))
    assert share.untyped_storage().nbytes() == 2 * 8 * 4


def test_random_weights_are_drawn_by_seed_and_name():
    def draw(seed: int, name: str) -> torch.Tensor:
        return random_weights(seed).take(name, (200, 100))

    assert torch.equal(draw(1, "x.weight"), draw(1, "x.weight"))
    assert not torch.equal(draw(1, "x.weight"), draw(1, "y.weight"))
    for other in (2, 1 + 2**31, -1):
        assert not torch.equal(draw(1, "x.weight"), draw(other, "x.weight"))
    drawn = draw(3, "x.weight")
    assert drawn.std() == pytest.approx(0.02, rel=0.05)
    assert drawn.mean() == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_random_norms_are_one_and_biases_zero(dtype):
    weights = random_weights(dtype=dtype)
    for name, value in (
        ("model.layers.0.input_layernorm.weight", 1),
        ("model.norm.weight", 1),
        ("model.decoder.final_layer_norm.weight", 1),
        ("model.decoder.final_layer_norm.bias", 0),
        ("model.decoder.layers.0.fc1.bias", 0),
    ):
        tensor = weights.take(name, (9,))
        assert tensor.dtype == dtype
        assert tensor.tolist() == [value] * 9
    assert weights.take("model.decoder.layers.0.fc1.weight", (9, 9)).all()


def test_weights_of_a_file_come_in_the_dtype_asked_for(folder):
    weights = weights_in(folder, torch.bfloat16)
    assert weights.take("model.a.weight", (5, 7)).dtype == torch.bfloat16
    assert weights.take("b.weight", (4,)).tolist() == [0, 1, 2, 3]


def test_a_base_models_checkpoint_has_names_without_the_prefix(folder):
    assert weights_in(folder).take("model.b.weight", (4,)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "shape", "complaint"),
    [
        ("model.z.weight", (4,), r"no tensor model\.z\.weight in model\.safetensors; give"),
        ("b.weight", (5,), r"model\.safetensors: b\.weight is BF16 \[4\], where .* \[5\]; give"),
        ("b.weight", (4, 1), r"b\.weight is BF16 \[4\], where .* \[4, 1\]; give"),
        ("model.c.weight", (4,), r"model\.c\.weight is I64 \[4\], where .* floats \[4\]; give"),
    ],
)
def test_a_tensor_that_is_not_there_or_another(folder, name, shape, complaint):
    with pytest.raises(ValueError, match=complaint):
        weights_in(folder).take(name, shape)


@pytest.mark.parametrize("kept", [0, 7, 60, -1])
def test_a_file_cut_short(folder, kept):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.safetensors: not a whole safetensors file \("):
        weights_in(folder)


def test_a_file_of_another_kind(folder):
    (folder / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n" * 9)
    with pytest.raises(ValueError, match=r"model\.safetensors: not a whole safetensors file \("):
        weights_in(folder)


def index(folder: Path, text: str) -> None:
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    (folder / "model.safetensors.index.json").write_text(text)


def test_a_shard_that_the_index_names_is_missing(folder):
    weight_map = {"model.a.weight": "one.safetensors", "d": "two.safetensors"}
    index(folder, json.dumps({"metadata": {}, "weight_map": weight_map}))
    with pytest.raises(ValueError, match=r"two\.safetensors: not a whole safetensors file \("):
        weights_in(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"metadata": {}}', '{"weight_map": ["a"]}', "\xff"])
def test_an_index_that_is_none(folder, text):
    index(folder, text)
    with pytest.raises(ValueError, match=r"index\.json: not an index as transformers writes it"):
        weights_in(folder)


@pytest.mark.parametrize(
    "name",
    ["../one.safetensors", "/etc/passwd", "..", ".", "", "a/../b", "inner/one.safetensors", "\0"],
)
def test_an_index_names_files_beside_it_alone(folder, name):
    index(folder, json.dumps({"weight_map": {"model.a.weight": name}}))
    with pytest.raises(ValueError, match="is not the name of a file beside it"):
        weights_in(folder)


def test_a_shard_may_be_a_link_as_in_hugging_faces_cache(folder, tmp_path_factory):
    index(folder, json.dumps({"weight_map": {"b.weight": "one.safetensors"}}))
    kept = tmp_path_factory.mktemp("blobs") / "blob"
    (folder / "one.safetensors").rename(kept)
    (folder / "one.safetensors").symlink_to(kept)
    assert weights_in(folder).take("b.weight", (4,)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_a_shard_that_is_no_file(folder, make):
    index(folder, json.dumps({"weight_map": {"b.weight": "two.safetensors"}}))
    make(folder / "two.safetensors")
    with pytest.raises(ValueError, match=r"two\.safetensors: not a whole safetensors file \("):
        weights_in(folder)
