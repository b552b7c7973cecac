"""The modes of a trial: what they count is what was made."""

import dis
import gc
import sys
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pytest
from small import CELL, engine, process, schedule

from engines.builtin.registries import REPRESENTATIONS
from engines.protocol import StepOutput
from gcbench.opcodes import OpcodeCounter
from harness.collector.probe import Probe
from harness.trial.client import Client
from harness.trial.clock import VirtualClock
from harness.trial.compute_metrics import Observation, compute_metrics
from harness.trial.modes import MODES

NOTHING = np.empty(0, np.int64)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Toy:
    """Makes so many sets while it hands over and keeps some; sets have no free list."""

    role = "engine"
    while_device_busy = None
    wire_bytes = 0
    vocab_size = 100

    def __init__(self, made: int, kept: int, steps: int) -> None:
        self.clock: Callable[[], int] = lambda: 0
        self.phase_stamps = [0] * 6
        self._made, self._kept, self._left = made, kept, steps
        self._scratch: list[object] = [None] * made
        self._store: list[object] = [None] * (kept * steps)
        self._row = np.zeros(1, np.int64), np.ones(1, np.int32)
        # The first call leaves a tuple on the interpreter's free list, which counts as kept.
        StepOutput(*self._row, (), NOTHING, NOTHING, b"")

    def add_request(self, *request: object) -> None:
        return

    def has_unfinished_requests(self) -> bool:
        return self._left > 0

    def step(self) -> StepOutput:
        self._left -= 1
        stamps = self.phase_stamps
        for phase in range(4):
            stamps[phase] = self.clock()
        for i in range(self._made):
            self._scratch[i] = set()
        stamps[4] = self.clock()
        for i in range(self._kept):
            self._store[self._left * self._kept + i] = self._scratch[i]
        for i in range(self._made):
            self._scratch[i] = None
        stamps[5] = self.clock()
        index, one = self._row
        done = index if not self._left else NOTHING
        return StepOutput(index, one, (), done, np.full(len(done), 1, np.int8), b"1234")

    def output_token_ids(self, index: int) -> np.ndarray:
        return np.zeros(1, np.int32)

    def handoff_bytes(self, sampled: bytes) -> int:
        return len(sampled)


def metrics_of(mode: str, served, of, full_batch: int) -> dict[str, float | None]:
    """What a mode says of an engine that serves a schedule."""
    watch = MODES[mode].watch(served, full_batch)
    client = Client(served, watch.step, of, VirtualClock())
    client.run()
    recorder = client.recorder
    events = Probe(capacity=0).events()
    seen = Observation(of, recorder.requests, recorder.steps, recorder.gaps, 1, [events],
                       [process()], 0, {}, {}, watch.results(), 0)  # fmt: skip
    return compute_metrics(seen, mode)[0]


@pytest.mark.parametrize(("made", "kept"), [(0, 0), (1, 0), (50, 0), (50, 50), (1000, 3)])
def test_tracked_objects_are_those_made_and_those_kept(made, kept):
    values = metrics_of("tracked", Toy(made, kept, steps=20), schedule([20]), 1)
    assert values["tracked_peak_per_step"] == made
    assert values["tracked_survivors_per_step"] == kept
    assert values["handoff_bytes"] == 4


def test_dying_elders_do_not_hide_what_is_made():
    toy = Toy(100, 0, steps=20)
    old = [set() for _ in range(5000)]
    step = toy.step

    def step_and_free() -> StepOutput:
        del old[-200:]
        return step()

    toy.step = step_and_free
    values = metrics_of("tracked", toy, schedule([20]), 1)
    assert values["tracked_peak_per_step"] == 100
    assert values["tracked_survivors_per_step"] == -200


@pytest.mark.parametrize("delivery", ["per_request", "columnar"])
def test_flat_arrays_leave_the_collector_nothing_when_delivered_in_columns(delivery):
    cell = msgspec.structs.replace(CELL, representation="flat_arrays", delivery=delivery)
    of = schedule([30] * 8)
    values = metrics_of("tracked", engine(of, cell), of, 8)
    if delivery == "columnar":
        assert values["tracked_peak_per_step"] < 8
    else:
        assert values["tracked_peak_per_step"] > 2 * 8


@pytest.mark.parametrize("name", REPRESENTATIONS.names())
@pytest.mark.parametrize("accepted", [[1], [1, 4, 2]])
def test_the_hand_off_is_as_large_as_the_representation_says(name, accepted):
    of = schedule([9, 4, 12, 12], num_accepted=accepted)
    cell = msgspec.structs.replace(CELL, representation=name)
    nbytes, sizes = REPRESENTATIONS.load(name)().nbytes, []
    served = engine(of, cell)

    def step() -> StepOutput:
        output = served.step()
        if len(output.request_index):
            sizes.append(nbytes(output.sampled))
        return output

    Client(served, step, of, VirtualClock()).run()
    values = metrics_of("tracked", engine(of, cell), of, 4)
    assert values["handoff_bytes"] == pytest.approx(sum(sizes) / len(sizes))
    assert min(sizes) > 0


def short(a: int) -> int:
    return a + 1


def long(a: int) -> int:
    b = a + 1
    c = (a, b)
    d = [a, b, c]
    return d[0] - b


def test_bytecodes_are_those_that_dis_shows():
    def counted(function: Callable[[int], int]) -> int:
        with OpcodeCounter() as counter:
            function(1)
        return counter.num_opcodes

    written = [sum(1 for _ in dis.get_instructions(f)) for f in (short, long)]
    run = [counted(f) for f in (short, long)]
    assert run[1] - run[0] == written[1] - written[0]
    assert [counted(f) for f in (short, long)] == run, "repeats to the digit"


def test_bytecodes_of_a_loop_grow_with_its_turns():
    def loop(turns: int) -> None:
        for _ in range(turns):
            pass

    def counted(turns: int) -> int:
        with OpcodeCounter() as counter:
            loop(turns)
        return counter.num_opcodes

    counts = [counted(turns) for turns in (1, 2, 3, 103)]
    each = counts[1] - counts[0]
    assert each > 0
    assert counts[2] - counts[1] == each
    assert counts[3] - counts[2] == 100 * each


def test_allocations_are_gross_of_what_dies_in_the_same_step():
    def churn(times: int) -> None:
        for _ in range(times):
            made = set()
            del made

    def counted(times: int) -> int:
        with OpcodeCounter() as counter:
            churn(times)
        return counter.num_allocations

    assert counted(300) - counted(100) == 200


def test_a_few_full_steps_are_traced_once_there_was_one():
    of = schedule([4] + [30] * 7)
    values = metrics_of("opcodes", engine(of), of, 8)
    assert values["bytecodes_per_request_step"] > 10
    again = metrics_of("opcodes", engine(of), of, 8)
    assert again["bytecodes_per_request_step"] == values["bytecodes_per_request_step"]


def test_where_no_step_is_full_no_bytecodes_are_claimed():
    of = schedule([9] * 4)
    values = metrics_of("opcodes", engine(of), of, full_batch=5)
    assert "bytecodes_per_request_step" not in values
    assert "tracked_allocations_per_step" not in values


def test_bytecodes_under_another_tracer_are_refused():
    def tracer(*_: object) -> None:
        return

    of = schedule([9] * 4)
    served = engine(of)
    sys.settrace(tracer)
    try:
        with pytest.raises(ValueError, match=r"tracer .* traces the engine's process, so its byt"):
            MODES["opcodes"].watch(served, 4)
    finally:
        sys.settrace(None)


def test_a_longer_delivery_shows_in_bytecodes():
    of = schedule([30] * 8)
    columns = msgspec.structs.replace(CELL, representation="flat_arrays", delivery="columnar")
    each = metrics_of("opcodes", engine(of), of, 8)["bytecodes_per_request_step"]
    at_once = metrics_of("opcodes", engine(of, columns), of, 8)["bytecodes_per_request_step"]
    assert each is not None
    assert at_once is not None
    assert each > at_once


def test_counting_modes_keep_the_collector_still_and_the_clock_virtual():
    assert {name for name, mode in MODES.items() if mode.policy == "disabled"} == {
        "tracked", "opcodes"
    }  # fmt: skip
    assert {name for name, mode in MODES.items() if not mode.virtual_time} == {"timing"}
    assert {name for name, mode in MODES.items() if mode.vary_phase} == {"timing"}
    assert not MODES["counts"].probe
