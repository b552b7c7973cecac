"""What broke people when the shape of sampled tokens changed, for every variant there is."""

import copy
from collections.abc import Iterator, Sequence
from itertools import product

import conformance
import numpy as np
import pytest
from examples import examples
from harness_free import MODES, Request, add, null_config, oracle, variants
from hypothesis import given

from engines.builtin.engine import Engine
from engines.builtin.registries import REPRESENTATIONS
from engines.protocol import Delivered, EngineConfig, FinishReason

every_variant = pytest.mark.parametrize(("representation", "delivery"), list(variants()))
every_representation = pytest.mark.parametrize("name", REPRESENTATIONS.names())


ONE_OR_MORE = ((1,), (1, 2, 4))
"""Tokens that a request accepts in a step."""


def configs(
    representation: str, delivery: str, num_accepted: Sequence[tuple[int, ...]] = ((1,),), **fields
) -> Iterator[EngineConfig]:
    """One variant in every mode of output processing."""
    for mode, accepted in product(MODES, num_accepted):
        yield null_config(
            representation=representation,
            delivery=delivery,
            output_processing=mode,
            num_accepted=accepted,
            **fields,
        )


def requests_of(count: int, max_tokens: int = 6, prompt_length: int = 5) -> list[Request]:
    return [Request(i, prompt_length, max_tokens, (), 0, None) for i in range(count)]


def outputs_of(engine: Engine, requests: list[Request]) -> Iterator[Delivered]:
    """All that is delivered until all is done."""
    for request in requests:
        add(engine, request)
    for _ in range(1_000):
        if not engine.has_unfinished_requests():
            return
        yield from engine.step().delivered
    pytest.fail("the engine makes no progress")


@every_variant
def test_token_0_is_a_token(representation, delivery):
    """Truth value: neither an array nor a bare 0 may be asked whether it is there."""
    for config in configs(representation, delivery, vocab_size=1):
        engine = Engine(config)
        for output in outputs_of(engine, requests_of(3)):
            assert output.num_tokens.all(), config
        assert [engine.output_token_ids(i).tolist() for i in range(3)] == [[0] * 6] * 3, config


@every_variant
def test_an_output_is_the_consumers_to_clear_and_cut(representation, delivery):
    """`.clear()` and `del x[n:]` on what was delivered leave what the engine keeps alone."""
    for config in configs(representation, delivery, ONE_OR_MORE):
        engine, requests = Engine(config), requests_of(4)
        for nth, output in enumerate(outputs_of(engine, requests)):
            for made in output.outputs:
                tokens = made.outputs[0].token_ids
                if isinstance(tokens, list) and nth % 2:
                    tokens.clear()
                elif isinstance(tokens, list):
                    del tokens[1:]
        for request in requests:
            kept = engine.output_token_ids(request.index).tolist()
            assert kept == oracle(config, request)[0], config


@every_representation
@examples(30)
@given(batch=conformance.batches())
def test_as_many_rows_as_requests(name, batch):
    """`len` of an array, a list or two arrays says three things; the two readings say one."""
    representation = REPRESENTATIONS.load(name)()
    sampled, _ = conformance.shape(representation, *batch)
    assert sum(1 for _ in representation.per_request(sampled)) == len(batch[0])
    if representation.columnar:
        assert len(representation.columns(sampled)[1]) == len(batch[0])


@every_variant
def test_only_python_values_leave_in_objects(representation, delivery):
    """No `np.int64` in an output."""
    for config in configs(representation, delivery, ONE_OR_MORE, max_num_batched_tokens=20):
        made_in_all = [
            made for output in outputs_of(Engine(config), requests_of(6)) for made in output.outputs
        ]
        for made in made_in_all:
            (completion,) = made.outputs
            tokens = completion.token_ids
            assert type(made.request_index) is int
            assert type(made.finished) is bool
            assert type(completion.finish_reason) in (FinishReason, type(None))
            assert type(tokens) in (int, list)
            assert all(type(token) is int for token in ([tokens], tokens)[type(tokens) is list])


@every_variant
def test_dtypes_hold_where_there_is_nothing(representation, delivery):
    """`np.array([])` is float64: steps without tokens, endings or requests keep their dtypes."""
    for config in configs(representation, delivery, max_num_batched_tokens=4):
        engine = Engine(config)
        steps = [engine.step()]
        outputs = [*outputs_of(engine, requests_of(2, prompt_length=11))]
        add(engine, Request(2, 11, 3, (), 0, None))
        steps += [engine.step()]
        engine.abort_request(2)
        steps += [engine.step(), engine.step()]
        outputs += [delivered for step in steps for delivered in step.delivered]
        empty = [output for output in outputs if not len(output.num_tokens)]
        assert len(empty) >= 3, "prompts in chunks and idle steps bring no token"
        for output in outputs:
            dtypes = [array.dtype for array in (*output[:2], *output[3:5])]
            assert dtypes == [np.int64, np.int32, np.int64, np.int8], config
        assert not any(output.outputs for output in empty), config


@every_representation
def test_an_empty_batch_and_empty_rows(name):
    representation = REPRESENTATIONS.load(name)()
    for rows, width in product(([], [[]], [[], [5], []]), (1, 3)):
        conformance.check(representation, rows, width)


@every_representation
def test_what_owns_its_memory_outlives_the_buffer(name):
    """Rows that alias the reused pinned buffer change under the consumer."""
    representation = REPRESENTATIONS.load(name)()
    sampled, host = conformance.shape(representation, [[1, 2], [3]], 2)
    host.fill(9)
    kept = conformance.read(representation, sampled) == [[1, 2], [3]]
    assert kept == representation.owns_memory


@every_variant
def test_an_output_that_is_kept_never_changes(representation, delivery):
    for config in configs(representation, delivery, ONE_OR_MORE):
        kept, as_it_was = [], []
        for output in outputs_of(Engine(config), requests_of(12, max_tokens=15)):
            kept += [made.outputs for made in output.outputs]
            as_it_was += [copy.deepcopy(made.outputs) for made in output.outputs]
        assert kept == as_it_was, config
        assert len(kept) > 12 or delivery == "columnar", config
