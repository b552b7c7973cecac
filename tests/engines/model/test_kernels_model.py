"""Whole models on the kernels give the logits that they give on the reference."""

from pathlib import Path

import pytest
import torch
from tiny_models import CPU, Requests, save

from engines.builtin.model import Ops
from engines.builtin.model.architectures import build_model
from engines.builtin.model.config import load_model
from engines.builtin.model.parallel import ONE_RANK
from engines.builtin.model.reference import ReferenceOps
from engines.builtin.model.weights import Weights

pytestmark = pytest.mark.slow

A, B = range(1, 12), range(40, 45)


def logits_of_some_steps(folder: Path, ops: Ops) -> list[torch.Tensor]:
    """A prompt, a chunk beside a decode, and a step in which all decode."""
    source = load_model(str(folder))
    weights = Weights(source, CPU, torch.float32, seed=0)
    model = build_model(source.config, weights, ops, ONE_RANK)
    requests = Requests(model, source.config)
    first, second = requests.add(), requests.add()
    steps: list[dict[int, list[int]]] = [
        {first: [*A]},
        {second: [*B], first: [7]},
        {first: [8], second: [9]},
    ]
    return [torch.cat([*requests.step(step).values()]) for step in steps]


def logits_on_the_kernels(folder: Path) -> list[torch.Tensor]:
    """To be called where Triton's interpreter runs them."""
    from engines.builtin.model.kernels import TritonOps

    return logits_of_some_steps(folder, TritonOps())


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", [pytest.param("opt", marks=pytest.mark.slow), "llama", "llama-gqa", "qwen3"]
)
@pytest.mark.landing
def test_a_model_on_the_kernels_equals_it_on_the_reference(interpreted, tmp_path, variant):
    save(variant, tmp_path)
    expected = logits_of_some_steps(tmp_path, ReferenceOps())
    for step, reference in zip(interpreted(logits_on_the_kernels, tmp_path), expected, strict=True):
        torch.testing.assert_close(step, reference, rtol=1e-4, atol=1e-4)
