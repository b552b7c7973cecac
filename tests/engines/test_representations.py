"""Every representation in the registry keeps to its contract; so does one from outside."""

import sys
from pathlib import Path
from random import Random

import conformance
import pytest
from examples import examples
from harness_free import check_against_oracle, draw_requests, null_config, run
from hypothesis import given

from engines.builtin.engine import Engine
from engines.builtin.registries import REPRESENTATIONS

NAMES = REPRESENTATIONS.names()

SEVENTH = """
import numpy as np
from engines.builtin.representations import ragged_mask


class Columns:
    columnar = True
    owns_memory = True

    def from_device(self, tokens, num_tokens):
        counts = np.ones(len(tokens), np.int32) if num_tokens is None else num_tokens
        return {"counts": counts, "values": tokens[ragged_mask(counts, tokens.shape[1])]}

    def per_request(self, sampled):
        values = iter(sampled["values"].tolist())
        return [[next(values) for _ in range(count)] for count in sampled["counts"].tolist()]

    def columns(self, sampled):
        return sampled["values"], sampled["counts"]

    def nbytes(self, sampled):
        return sampled["values"].nbytes + sampled["counts"].nbytes
"""


@pytest.mark.parametrize("name", NAMES)
@examples(60)
@given(batch=conformance.batches())
def test_conforms(name, batch):
    conformance.check(REPRESENTATIONS.load(name)(), *batch)


@pytest.mark.parametrize("name", NAMES)
def test_no_columns_is_said(name):
    representation = REPRESENTATIONS.load(name)()
    sampled, _ = conformance.shape(representation, [[1]], 1)
    if not representation.columnar:
        with pytest.raises(NotImplementedError, match="no columns"):
            representation.columns(sampled)


@pytest.fixture
def seventh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An installed distribution that adds a representation, for this process and its children."""
    (tmp_path / "elsewhere_columns.py").write_text(SEVENTH)
    info = tmp_path / "elsewhere_columns-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere-columns\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gcbench.representations]\ncolumns = elsewhere_columns:Columns\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    yield "columns"
    sys.modules.pop("elsewhere_columns", None)


@pytest.mark.slow
def test_one_from_another_distribution(seventh):
    assert REPRESENTATIONS.names() == [*NAMES, seventh]
    representation = REPRESENTATIONS.load(seventh)()
    for rows, width in [([], 1), ([[3], [4]], 1), ([[], [1, 2], [5]], 2)]:
        conformance.check(representation, rows, width)
    config = {"representation": seventh, "delivery": "columnar", "num_accepted": (1, 3)}
    for worker in ("in-process", "process"):
        engine = Engine(null_config(**config, worker=worker))
        try:
            requests = draw_requests(Random(1), null_config())
            check_against_oracle(null_config(**config), requests, run(engine, requests))
        finally:
            engine.shutdown()


def test_it_is_gone_with_its_distribution():
    assert REPRESENTATIONS.names() == NAMES
    with pytest.raises(ValueError, match="unknown representation 'columns'"):
        REPRESENTATIONS.load("columns")
