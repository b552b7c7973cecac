"""What a decode step costs by its batch and its context: counted at a small grid, then fitted."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engines.protocol import Delivered, Int32Array, StepEngine, StepOutput
from gcbench.function_costs import bytecodes_by_function
from gcbench.opcodes import OpcodeCounter
from harness.metrics import STEP_PARTS
from harness.trial.client import Streams, abort_all, sampling_params, take
from harness.trial.step_costs import RequestFunctionCost
from workloads.schedule import Schedule

_SHORT, LONG = 64, 4096
"""Prompt tokens."""
_FEWEST, _FEW = 4, 64
"""Rows: of fewer no square can be told; between one and the largest batch."""
_SETTLING = 5
"""Steps that are not traced, in which a crowd joins the batch and the one before leaves it: SGLang
merges and filters batches, and what was aborted runs once more."""
_CYCLE, _BRIEF = 17, 3
"""Steps traced at a point: each row begins and fills a block; of the largest batch a few."""
_MOST_IDLE = 2 * LONG
"""Steps in a row in which no request gets its first token: a step computes at least one token of
a prompt."""
MOST_TOKENS = LONG + 64
"""Of a request: its prompt, and more than all steps that are taken."""
_LEAST = 1e-6
"""A bytecode in a million: what is left of a coefficient that is none."""

COEFFICIENTS, _PROMPT = STEP_PARTS[:-1], STEP_PARTS[-1]
"""Bytecodes of a decode step as such, of each request in it, of each pair of two requests (their
number squared), of each token that its requests have in the KV cache, of each block of the cache
that begins and that fills, and of a step in which any does; and of a prompt's token."""


class CostModel(NamedTuple):
    """``functions``: the part of each function, by coefficient and for ``prompt``, a token of a
    prompt. ``steps``: bytecodes of each decode step that was traced. ``rest``: of the step that is
    fitted worst, the share that is not explained.
    """

    functions: dict[str, list[RequestFunctionCost]]
    steps: list[int]
    rest: float

    def metrics(self) -> dict[str, float | None]:
        """By the names of `harness.metrics`."""
        sums = {name: sum(each.bytecodes for each in own) for name, own in self.functions.items()}
        parts = {f"bytecodes_per_{name}": round(total, 4) for name, total in sums.items()}
        return {**parts, "cost_model_rest": self.rest}


_Functions = Counter[tuple[str, str, int]]
"""Bytecodes by file, qualified name and first line."""


class _Step(NamedTuple):
    features: tuple[float, ...]
    bytecodes: _Functions


def cost_model(
    engine: StepEngine,
    schedule: Schedule,
    batch_size: int,
    block_size: int,
    streams: Streams | None = None,
) -> CostModel | None:
    """Count an engine that has no requests, and leave it so.

    None for a batch of less than four, and where a step may give a request several tokens.

    At 1, 64 and ``batch_size`` requests of 64 prompt tokens and at a quarter of a batch, so that
    three batches do not explain themselves; and at 1 and 64 of 4,096. Raises ValueError where an
    engine does not serve these.
    """
    if batch_size < _FEWEST or schedule.num_accepted.max() > 1:
        return None
    grid = _Grid(engine, schedule, block_size, streams)
    few = min(_FEW, batch_size // 2)
    grid.steps(few, _SHORT, _BRIEF)  # warms what is made once
    points = [(rows, context, _CYCLE) for rows in (1, few) for context in (_SHORT, LONG)]
    points += [(rows, _SHORT, _BRIEF) for rows in (batch_size // 4, batch_size)]
    steps = [step for point in points for step in grid.steps(*point)]
    functions, rest = _fitted(steps)
    # The first step after a crowd has its ends to tidy up.
    _, short, long = (grid.prompt(tokens) for tokens in (_SHORT, _SHORT, LONG))
    each = {name: (long[name] - short[name]) / (LONG - _SHORT) for name in long | short}
    taken = [step.bytecodes.total() for step in steps]
    return CostModel(functions | {_PROMPT: _costs(each)}, taken, rest)


class _Grid:
    """Requests of no one's, a crowd at a time."""

    def __init__(
        self, engine: StepEngine, schedule: Schedule, block_size: int, streams: Streams | None
    ) -> None:
        self._engine = engine
        self._block_size = block_size
        self._streams = streams
        self._params = replace(
            sampling_params(schedule)[0],
            max_tokens=MOST_TOKENS - LONG,
            min_tokens=0,
            stop=(),
            stop_token_ids=(),
            ignore_eos=True,
        )
        self._next = 4 * schedule.num_requests + 1000
        self._rng = np.random.default_rng(schedule.token_seed)
        self._num_tokens: dict[int, int] = {}
        self._counter = OpcodeCounter()
        self._before: _Functions = Counter()

    def steps(self, rows: int, context: int, most: int) -> list[_Step]:
        """Traced decode steps of so many requests, each beside its features."""
        for _ in range(rows):
            self._add(self._prompt(context))
        self._until_first_tokens(context, self._engine.step)
        for _ in range(_SETTLING):
            self._note(self._engine.step().delivered)
        found = []
        for _ in range(most):
            features = self._features()
            with self._counter:
                self._engine.has_unfinished_requests()
                output = self._engine.step()
            self._note(output.delivered)
            found.append(_Step(features, self._counted()))
        self._end()
        return found

    def prompt(self, context: int) -> _Functions:
        """What adding a request and computing its prompt take."""
        prompt = self._prompt(context)
        with self._counter:
            self._add(prompt)
        self._until_first_tokens(context, self._traced_step)
        self._end()
        return self._counted()

    def _traced_step(self) -> StepOutput:
        with self._counter:
            return self._engine.step()

    def _until_first_tokens(self, context: int, step: Callable[[], StepOutput]) -> None:
        """Until each request has one token more than its prompt."""
        idle, before = 0, 0
        while waiting := list(self._num_tokens.values()).count(context):
            idle, before = idle + 1 if waiting == before else 0, waiting
            if idle > _MOST_IDLE:
                raise ValueError(
                    f"of {len(self._num_tokens)} requests with {context} prompt tokens {waiting} "
                    f"got no token in {_MOST_IDLE} steps; without these no step is told by batch "
                    "and context: let the engine serve them, or give a smaller --batch-size"
                )
            self._note(step().delivered)

    def _counted(self) -> _Functions:
        """Since it was last asked."""
        before, self._before = self._before, bytecodes_by_function(self._counter.tree)
        return self._before - before

    def _features(self) -> tuple[float, ...]:
        """In the order of `COEFFICIENTS`; what begins, what fills, and what fills where the engine
        schedules a step ahead of the one whose tokens it has, apart.
        """
        # The token that was sampled last is computed in the step that is to come.
        computed = np.array(list(self._num_tokens.values())) - 1
        rows, place, last = len(computed), computed % self._block_size, self._block_size - 1
        at = [int((place == each % self._block_size).sum()) for each in (0, last, last - 1)]
        return 1, rows, rows**2, int(computed.sum()), *at, *map(bool, at)

    def _add(self, prompt: Int32Array) -> None:
        self._engine.add_request(self._next, prompt, self._params)
        self._num_tokens[self._next] = len(prompt)
        self._next += 1

    def _prompt(self, context: int) -> Int32Array:
        """Random: a prefix cache must not know it."""
        return self._rng.integers(0, self._engine.vocab_size, context, np.int32)

    def _note(self, delivered: Sequence[Delivered]) -> None:
        for each in delivered:
            take(each, self._streams)
            for index, count in zip(
                each.request_index.tolist(), each.num_tokens.tolist(), strict=True
            ):
                self._num_tokens[index] += count

    def _end(self) -> None:
        abort_all(self._engine, self._num_tokens)
        self._num_tokens.clear()


def _fitted(steps: Sequence[_Step]) -> tuple[dict[str, list[RequestFunctionCost]], float]:
    """Least squares, function by function, and the largest share of a step that is left."""
    names = sorted({name for step in steps for name in step.bytecodes})
    features = np.array([step.features for step in steps], np.float64)
    counted = np.array([[step.bytecodes[name] for name in names] for step in steps], np.float64)
    scale = features.max(axis=0, initial=1)
    fit = np.linalg.lstsq(features / scale, counted, rcond=None)[0] / scale[:, None]
    rest = np.abs((counted - features @ fit).sum(axis=1)) / counted.sum(axis=1)
    apart, blocks, any_blocks = fit[:4], fit[4:7], fit[7:]
    parts: list[NDArray[np.float64]] = [*apart, blocks.sum(axis=0), any_blocks.sum(axis=0)]
    functions: dict[str, list[RequestFunctionCost]] = {
        coefficient: _costs(dict(zip(names, part.tolist(), strict=True)))
        for coefficient, part in zip(COEFFICIENTS, parts, strict=True)
    }
    return functions, round(float(rest.max()), 6)


def _costs(bytecodes: dict[tuple[str, str, int], float]) -> list[RequestFunctionCost]:
    return [
        RequestFunctionCost(*name, round(each, 6), 0.0)
        for name, each in sorted(bytecodes.items(), key=lambda item: -abs(item[1]))
        if abs(each) > _LEAST
    ]
