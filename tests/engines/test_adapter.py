"""An engine of four methods: what gcbench does for it, and what it is told where it is wrong."""

import re
from array import array
from dataclasses import replace

import numpy as np
import pytest

from engines.adapted import AdaptedClass, as_engine
from engines.adapter import Adapter, NewTokens
from engines.contract import engine_breach
from engines.protocol import EngineConfig, FinishReason, SamplingParams
from gcbench.function_costs import counted_calls
from gcbench.opcodes import OpcodeCounter

CONFIG = EngineConfig(max_num_seqs=4, max_model_len=64, device="", representation="")
PROMPT = np.arange(3, dtype=np.int32)


class Echo(Adapter):
    """A token a step for each request: how many it has had."""

    def __init__(self, config):
        self.left, self.length = {}, {}
        self.is_flat = config.representation == "flat"

    def add_request(self, request, prompt_token_ids, params):
        self.left[request] = self.length[request] = params.max_tokens

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        rows = list(self.left)
        had = [self.length[row] - self.left[row] for row in rows]
        self.left = {row: left - 1 for row, left in self.left.items() if left > 1}
        tokens = array("i", had) if self.is_flat else [[each] for each in had]
        return NewTokens(rows, tokens, [row for row in rows if row not in self.left])

    def shutdown(self):
        pass


class Shaped(Echo):
    representations = ("nested", "flat")


class Aborting(Echo):
    def abort_request(self, request):
        del self.left[request]


class Queued(Echo):
    """What is on its way to a request still comes, and its end."""

    def abort_request(self, request):
        self.left[request] = 1


def serve(engine, lens):
    for index, length in enumerate(lens):
        engine.add_request(index, PROMPT, SamplingParams(max_tokens=length))
    found = {}
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            assert delivered.finish_reasons.tolist() == [FinishReason.LENGTH] * len(
                delivered.finished
            )
            for index in delivered.finished.tolist():
                found[index] = engine.output_token_ids(index).tolist()
    return found


@pytest.mark.parametrize("shape", ["nested", "flat"])
def test_each_request_has_its_tokens_in_either_shape(shape):
    engine = as_engine(Shaped)(replace(CONFIG, representation=shape))
    assert serve(engine, [1, 3, 2]) == {0: [0], 1: [0, 1, 2], 2: [0, 1]}


def test_an_engine_has_its_first_shape_and_no_other_than_its_own():
    shaped, plain = as_engine(Shaped), as_engine(Echo)
    assert shaped.shapes == (("nested", "per_request"), ("flat", "per_request"))
    assert (shaped.complete(CONFIG).representation, shaped.complete(CONFIG).device) == (
        "nested",
        "null",
    )
    assert plain.shapes == (("", "per_request"),)
    with pytest.raises(ValueError, match=r"^--representation tensor: this engine has nested, flat"):
        shaped.complete(replace(CONFIG, representation="tensor"))
    with pytest.raises(ValueError, match=r"no representations of its own; leave it out$"):
        plain.complete(replace(CONFIG, representation="tensor"))


@pytest.mark.parametrize("adapter", [Echo, Aborting, Queued])
def test_nothing_more_is_heard_of_an_aborted_request(adapter):
    engine = as_engine(adapter)(CONFIG)
    for index, length in enumerate([4, 9, 2]):
        engine.add_request(index, PROMPT, SamplingParams(max_tokens=length))
    engine.step()
    engine.abort_request(1)
    engine.abort_request(1)
    engine.abort_request(7)
    seen, steps = set(), 1
    while engine.has_unfinished_requests():
        steps += 1
        for delivered in engine.step().delivered:
            seen |= {*delivered.request_index.tolist(), *delivered.finished.tolist()}
    assert seen == {0, 2}
    assert steps == (9 if adapter is Echo else 4)


def test_what_is_added_to_a_step_runs_as_many_bytecodes_for_any_batch():
    class Still(Echo):
        def step(self):
            return self.made

    def bytecodes(batch):
        engine = as_engine(Still)(CONFIG)
        for index in range(batch):
            engine.add_request(index, PROMPT, SamplingParams(max_tokens=9))
        Still.made = NewTokens(list(range(batch)), [[1]] * batch)
        with OpcodeCounter() as counter:
            engine.step()
        functions = counted_calls(counter.tree, {}).functions
        return sum(each.bytecodes for each in functions if each.file.endswith("adapted.py"))

    assert bytecodes(2) == bytecodes(300) > 0


def test_tokens_of_a_request_that_was_never_added_are_refused():
    class Lost(Echo):
        def step(self):
            return NewTokens(["a-uuid"], [[1]])

    with pytest.raises(ValueError, match=r"^step\(\) hands over tokens of request 'a-uuid'"):
        as_engine(Lost)(CONFIG).step()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (([0], [[1]]), "step() returned a tuple; return NewTokens("),
        ({0: 1}, "step() returned a dict; return NewTokens("),
        (NewTokens([0, 1], [[1]]), "step() names 2 requests and has tokens of 1;"),
        (NewTokens([0], []), "step() names 1 requests and has tokens of 0;"),
        (NewTokens([0], ["x"]), "step() hands over 'x' for request 0; a token is a whole"),
        (NewTokens([0], [0.5]), "step() hands over 0.5 for request 0; a token is a whole"),
        (NewTokens([0, 1], [[1], 2]), "step() hands over [[1], 2]; give each request a token, or"),
        (NewTokens([0], [["x"]]), "step() hands over [['x']]; give each request a token, or"),
    ],
)
def test_what_a_step_must_not_return_is_told_with_what_to_do(made, words):
    engine = as_engine(type("Wrong", (Echo,), {"step": lambda self: made}))(CONFIG)
    for index in range(2):
        engine.add_request(index, PROMPT, SamplingParams(max_tokens=2))
    with pytest.raises(ValueError, match=f"^{re.escape(words)}"):
        engine.step()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"step": Adapter.step, "shutdown": None}, "has no methods step, shutdown"),
        ({"representations": "flat"}, "has representations 'flat': must be a tuple of names"),
        ({"devices": ()}, "has devices (): must be a tuple of names"),
        ({"traits": {"is_exact": True}}, "has traits {'is_exact': True}: must be Traits(...)"),
        ({"package": "my-engine"}, "has package 'my-engine': must be a path, such as"),
        ({"representations": ("a", "a")}, "has representations ('a', 'a'): must be a tuple of"),
        ({"axes": {"wire"}}, "has axes {'wire'}: must be a frozenset"),
    ],
)
def test_what_is_wrong_with_a_class_is_said_before_it_is_built(given, words):
    assert engine_breach(as_engine(type("Wrong", (Echo,), given))).startswith(words)


def test_a_class_of_four_methods_keeps_the_contract():
    assert engine_breach(as_engine(Echo)) == ""
    assert isinstance(as_engine(Echo), AdaptedClass)
    assert as_engine(Echo).package == Echo.__module__.partition(".")[0]


def test_its_tokens_are_its_own_script_unless_it_says_that_they_do_not_repeat():
    nested, flat = (
        as_engine(Shaped)(replace(CONFIG, representation=name)).script
        for name in ("nested", "flat")
    )
    assert nested == flat != as_engine(Echo)(CONFIG).script != ""
    modelled = type("Modelled", (Echo,), {"repeats_tokens": False})
    assert as_engine(modelled)(CONFIG).script == ""
