"""What a step costs by batch and context: a planted loop is in the part that it belongs to."""

from collections.abc import Callable

import numpy as np
import pytest
from small import CELL, schedule

from engines.builtin.engine import Engine
from engines.protocol import StepOutput
from harness.trial.cost_grid import COEFFICIENTS, LONG, MOST_TOKENS, CostModel, cost_model
from harness.trial.engine_config import engine_config

pytestmark = pytest.mark.usefixtures("no_collector")
OF = schedule([40] * 8)
ROWS, BLOCK = 8, 16
Turns = Callable[[list[int]], int]
"""Of a loop in each step, by how many tokens each of its requests has in the KV cache."""
PLANTED: dict[str, Turns] = {
    "fixed": lambda computed: 1,
    "row": len,
    "pair": lambda computed: len(computed) ** 2,
    "context": sum,
    "block": lambda computed: sum(each % BLOCK == 0 for each in computed),
    "block_step": lambda computed: bool((np.array(computed) % BLOCK == BLOCK - 1).any()),
}


class Changed:
    """The built-in engine with a loop in ``step``, and one over each prompt that is added."""

    def __init__(self, turns: Turns, per_turn: int = 1, per_prompt_token: int = 0) -> None:
        self._engine = Engine(engine_config(CELL, OF, MOST_TOKENS))
        self._turns, self._per_turn, self._of_prompt = turns, per_turn, per_prompt_token
        self._computed: dict[int, int] = {}
        self._prompts: dict[int, int] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def add_request(self, index, prompt, params, priority=0):
        """The engine's."""
        for _ in range(self._of_prompt * len(prompt)):
            pass
        self._engine.add_request(index, prompt, params, priority)
        self._computed[index] = 0
        self._prompts[index] = len(prompt)

    def abort_request(self, index):
        """The engine's."""
        del self._computed[index]
        self._engine.abort_request(index)

    def step(self) -> StepOutput:
        """The engine's."""
        decoding = [each for each in self._computed.values() if each]
        for _ in range(self._per_turn * self._turns(decoding)):
            pass
        output = self._engine.step()
        for delivered in output.delivered:
            for index in delivered.request_index.tolist():
                self._computed[index] += 1 if self._computed[index] else self._prompts[index]
        return output


def model(turns: Turns = len, per_turn: int = 0, per_prompt_token: int = 0) -> CostModel:
    """Of an engine so changed."""
    found = cost_model(Changed(turns, per_turn, per_prompt_token), OF, ROWS, BLOCK)
    assert found is not None
    return found


def test_the_built_in_engine_is_explained_to_the_bytecode():
    found = model()
    assert found.rest == 0
    metrics = found.metrics()
    assert all(value == round(value) for value in metrics.values())
    assert metrics["bytecodes_per_row"] > 50
    assert {metrics[f"bytecodes_per_{part}"] for part in ("pair", "context", "block")} == {0}


@pytest.mark.parametrize("part", COEFFICIENTS)
def test_a_planted_loop_is_in_the_part_that_it_belongs_to(part):
    """More turns cost so much more each, and nothing else moves."""
    one, three = (model(PLANTED[part], turns).metrics() for turns in (1, 3))
    moved = {name for name in one if abs(three[name] - one[name]) > 1e-3}
    assert moved == {f"bytecodes_per_{part}"}
    of_a_turn = (three[f"bytecodes_per_{part}"] - one[f"bytecodes_per_{part}"]) / 2
    assert of_a_turn == pytest.approx(round(of_a_turn), abs=1e-4)
    assert of_a_turn >= 2
    assert three["cost_model_rest"] < 1e-6


def test_a_loop_over_a_prompt_is_in_each_of_its_tokens():
    one, three = (model(per_prompt_token=turns).metrics() for turns in (1, 3))
    moved = {name for name in one if abs(three[name] - one[name]) > 1e-3}
    assert moved == {"bytecodes_per_prompt"}
    assert three["bytecodes_per_prompt"] == pytest.approx(3 * one["bytecodes_per_prompt"])


def test_steps_that_were_traced_are_told_one_by_one():
    plain, three = (model(PLANTED["row"], turns) for turns in (0, 3))
    rows = [1] * 17 * 2 + [4] * 17 * 2 + [2] * 3 + [8] * 3
    (turn,) = {
        round(grown / (3 * of), 9)
        for of, grown in zip(
            sorted(rows), sorted(np.subtract(three.steps, plain.steps).tolist()), strict=True
        )
    }
    assert turn == round(turn) >= 2


def test_blocks_of_an_engine_that_is_a_step_ahead_are_in_their_part():
    """Under async scheduling a step has a token in flight that nobody has."""
    ahead = model(lambda computed: sum((each + 1) % BLOCK == BLOCK - 1 for each in computed), 5)
    assert ahead.rest < 1e-6
    assert ahead.metrics()["bytecodes_per_block"] > 5


def test_a_crowd_that_joins_the_batch_is_no_part_of_a_step():
    """SGLang merges newcomers, and filters whom it aborted, in the first steps after a prompt."""
    joining = model(lambda computed: sum(each % 64 < 5 for each in computed), 50)
    unmoved = model(lambda computed: 0, 50)
    assert joining.rest < 1e-6
    assert joining.metrics()["bytecodes_per_block_step"] == pytest.approx(
        unmoved.metrics()["bytecodes_per_block_step"], abs=1e-3
    )


def test_what_no_part_explains_is_told():
    assert model(lambda computed: (sum(computed) % 7) ** 2, 100).rest > 0.01


def test_a_cost_that_grows_with_the_batch_in_another_way_is_told():
    assert model(lambda computed: min(len(computed), 3), 30).rest > 0.001


def test_each_part_has_the_functions_that_it_is_of():
    found = model(PLANTED["pair"], 10)
    (only,) = found.functions["pair"]
    assert only.name == "Changed.step"
    assert only.bytecodes == pytest.approx(found.metrics()["bytecodes_per_pair"], abs=1e-4)


def test_of_a_batch_that_is_too_small_nothing_is_told():
    assert cost_model(Changed(len, 0), OF, 3, BLOCK) is None


class Starving(Changed):
    """Never schedules a prompt of the longer kind, as where it exceeds what a step may compute."""

    def add_request(self, index, prompt, params, priority=0):
        """Dropped where it is long."""
        if len(prompt) < LONG:
            super().add_request(index, prompt, params, priority)


def test_an_engine_that_gives_no_first_token_is_refused_and_not_waited_for():
    with pytest.raises(ValueError, match="of 1 requests with 4096 prompt tokens 1 got no token"):
        cost_model(Starving(len, 0), OF, ROWS, BLOCK)
