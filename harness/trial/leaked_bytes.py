"""What an engine keeps of requests that have gone: bytes that grow, by step, request and block."""

import gc
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from engines.protocol import StepEngine
from gcbench.relative_file import relative_file
from harness.collector.state import restore, snapshot
from harness.trial.client import Streams, sampling_params, take
from harness.trial.growing_lines import GROWS_WITH, GrowingLine
from harness.trial.held_bytes import HeldBytes, HeldGrowth
from harness.trial.tracing import start_tracing
from workloads.schedule import Schedule

_MOST_REQUESTS = 16
_CROWDS = 4
"""Served in a window, one after the other."""
_SHORT, _LONG = 2, 6
"""Output tokens: of the first a prompt's step and another, of both no more than half a block."""
_KINDS = ((1, _SHORT), (1, _LONG), (2, _SHORT))
"""Of windows: the blocks of each request, and its output tokens."""
_ROUNDS = 3
_FILL_REQUESTS, _FILL_CROWD = 1_000, 8
"""Served before the windows, so many at a time: a cache with room for them has filled by then."""
_FRAMES = 3


class _Crowds:
    """Requests of no one's, the same prompts each time: a prefix cache learns nothing new."""

    def __init__(
        self, engine: StepEngine, schedule: Schedule, block_size: int, streams: Streams | None
    ) -> None:
        self._engine, self._streams = engine, streams
        self._next = 2 * schedule.num_requests  # `warm_up` has had the first ones
        params = sampling_params(schedule)[0]
        self._params = {
            count: replace(params, max_tokens=count, min_tokens=min(params.min_tokens, count))
            for count in (_SHORT, _LONG)
        }
        count = min(_MOST_REQUESTS, schedule.num_requests)
        whole = [schedule.prompt_token_ids(i, engine.vocab_size) for i in range(count)]
        # Half of the last block stays free, whether the engine gives sampled tokens room or not.
        lengths = {blocks: block_size * blocks - block_size // 2 for blocks, _ in _KINDS}
        self._prompts = {
            blocks: [np.resize(each, length) for each in whole]
            for blocks, length in lengths.items()
        }

    def settle(self, count: int) -> None:
        """Fill what caches there are, and make what is made once."""
        size = min(count, _FILL_CROWD)
        for _ in range(0, _FILL_REQUESTS, size):
            self._serve(size, *_KINDS[0])
        for kind in range(len(_KINDS)):
            self.window(count, kind)

    def window(self, count: int, kind: int) -> int:
        """Serve a window of a kind, ``count`` requests at a time; how many steps that took."""
        return sum(self._serve(count, *_KINDS[kind]) for _ in range(_CROWDS))

    def _serve(self, count: int, num_blocks: int, num_tokens: int) -> int:
        engine, params = self._engine, self._params[num_tokens]
        for prompt in self._prompts[num_blocks][:count]:
            engine.add_request(self._next, prompt, params)
            self._next += 1
        num_steps = 0
        while engine.has_unfinished_requests():
            for delivered in engine.step().delivered:
                take(delivered, self._streams)
                for index in delivered.finished.tolist():
                    engine.output_token_ids(index)
            num_steps += 1
        return num_steps


def growing_lines(
    engine: StepEngine,
    schedule: Schedule,
    *,
    package: str,
    block_size: int,
    batch_size: int,
    streams: Streams | None = None,
) -> list[GrowingLine] | None:
    """Which lines leave bytes for good while an idle ``engine`` of ``package`` serves small crowds.

    Three kinds of windows differ in steps and blocks and come three times each, behind requests
    that fill what caches there are. A line, or a container, grows if it never shrinks and holds
    more after each of the three of a kind: what ends is no growth, nor is what comes less often
    than a window. The kinds' medians are solved for what a step, a request and a block leave; less
    than nothing, of requests where not every step leaves something, is nothing.

    None where a request of two blocks is longer than the schedule's longest, half a block too short
    for the outputs, or kinds take equal steps. Raises ValueError where `tracemalloc` runs already.
    """
    if block_size // 2 < _LONG or schedule.max_model_len < 2 * block_size:
        return None
    count = min(_MOST_REQUESTS, batch_size, schedule.num_requests)
    crowds = _Crowds(engine, schedule, block_size, streams)
    held = HeldBytes(package, _ROUNDS * len(_KINDS) + 1)
    steps = [0] * len(_KINDS)
    before = snapshot()
    gc.disable()
    start_tracing(_FRAMES)
    try:
        held.find_growing(lambda: crowds.settle(count))
        held.look()
        for _ in range(_ROUNDS):
            for kind in range(len(_KINDS)):
                steps[kind] = crowds.window(count, kind)
                held.look()
        growth = held.growth()
    finally:
        tracemalloc.stop()
        restore(before)
    requests = _CROWDS * count
    parts = [(s, requests, requests * blocks) for s, (blocks, _) in zip(steps, _KINDS, strict=True)]
    return _solved(np.array(parts, np.float64), growth)


def _solved(parts: NDArray[np.float64], growth: Sequence[HeldGrowth]) -> list[GrowingLine] | None:
    """The largest first. ``parts`` ``[kind, 3]``: a window's steps, requests and blocks."""
    if np.linalg.matrix_rank(parts) < len(parts):
        return None
    found: dict[tuple[str, int, str], NDArray[np.float64]] = {}
    for (file, line), what, num_bytes in growth:
        kinds = [num_bytes[kind :: len(parts)] for kind in range(len(parts))]
        if min(num_bytes) >= 0 and any(map(all, kinds)):
            steady = [median(each) if all(each) else 0 for each in kinds]
            rates = np.maximum(np.linalg.solve(parts, steady).round(6), 0)
            key = relative_file(file) if file else "", line, what
            found[key] = found.get(key, 0) + rates
    lines = [
        GrowingLine(
            file=file,
            line=line,
            what=what,
            rates={of: rate for of, rate in zip(GROWS_WITH, rates.tolist(), strict=True) if rate},
        )
        for (file, line, what), rates in found.items()
    ]
    return sorted(lines, key=lambda each: (-sum(each.rates.values()), each.file, each.line))
