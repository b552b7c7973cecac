"""The modes of a trial: what they count is what was made."""

import dis
import gc
import marshal
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache

import msgspec
import numpy as np
import pytest
from small import CELL, engine, process, schedule

from engines.builtin.registries import REPRESENTATIONS
from engines.protocol import DIRECTIONS, Delivered, StepOutput
from gcbench.opcodes import OpcodeCounter
from harness.collector import window
from harness.collector.probe import Probe
from harness.trial.answers import Answers
from harness.trial.client import Streams, TrialClient
from harness.trial.clock import VirtualClock
from harness.trial.compute_metrics import Observation, compute_metrics
from harness.trial.modes import MODES
from harness.trial.watch import Extent
from workloads.schedule import Schedule

NOTHING = np.empty(0, np.int64)


@pytest.fixture(autouse=True)
def nothing_else_young() -> Iterator[None]:
    gc.collect(1)
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()


class Toy:
    """Makes so many objects while it hands over and keeps some of them."""

    role = "engine"
    while_device_busy = None
    wire_bytes = 0
    vocab_size = 100

    def __init__(
        self,
        made: int,
        kept: int,
        steps: int,
        make: Callable[[], object] = set,
        *,
        lets_go: bool = True,
    ) -> None:
        self._lets_go = lets_go
        self._make = make
        self.clock: Callable[[], int] = lambda: 0
        self.phase_stamps = [0] * 6
        self._made, self._kept, self._left = made, kept, steps
        self._scratch: list[object] = [None if lets_go else make() for _ in range(made)]
        self._store: list[object] = [None] * (kept * steps)
        self._row = np.zeros(1, np.int64), np.ones(1, np.int32)

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
            self._scratch[i] = self._make()
        stamps[4] = self.clock()
        for i in range(self._kept):
            self._store[self._left * self._kept + i] = self._scratch[i]
        for i in range(self._made if self._lets_go else 0):
            self._scratch[i] = None
        stamps[5] = self.clock()
        index, one = self._row
        done = index if not self._left else NOTHING
        delivered = Delivered(index, one, (), done, np.full(len(done), 1, np.int8))
        return StepOutput((delivered,), b"1234")

    def output_token_ids(self, index: int) -> np.ndarray:
        return np.zeros(1, np.int32)

    def handoff_bytes(self, sampled: bytes) -> int:
        return len(sampled)


def metrics_of(
    mode: str, served, of, extent: Extent, streams: Streams | None = None
) -> dict[str, float | None]:
    """What a mode says of an engine that serves a schedule."""
    watch = MODES[mode].watch(served, extent)
    client = TrialClient(
        served,
        watch.step,
        of,
        VirtualClock(),
        has_unfinished_requests=watch.has_unfinished_requests,
        streams=streams,
        take=watch.take,
    )
    watch.window_opens()
    client.run()
    watch.steps_end()
    watch.window_closes(Answers(client))
    recorder = client.recorder
    events = Probe(capacity=0).events()
    seen = Observation(
        of,
        recorder.requests,
        recorder.steps,
        recorder.gaps,
        1,
        [events],
        [process()],
        0,
        {},
        {},
        {},
        watch.results(recorder.num_rows),
        0,
    )
    return compute_metrics(seen, mode)[0]


INNER: list[None] = []
MAKERS: dict[str, Callable[[], object]] = {
    "set": set,
    "list": list,
    "tracked dict": lambda: {"inner": INNER},
    "untracked dict": lambda: {"row": 1, "tags": None},
    "float": lambda: float("1.5"),
}


def of_size(size: int) -> Callable[[], object]:
    return lambda: (INNER,) * size


MAKERS |= {f"tuple of {size}": of_size(size) for size in (1, 2, 5, 19, 30)}


@pytest.mark.parametrize(("made", "kept"), [(1, 1), (50, 0), (1000, 3)])
@pytest.mark.parametrize("kind", MAKERS)
def test_tracked_objects_are_those_made_and_those_kept(kind, made, kept):
    """Those of free lists too, of which there are some for half of these kinds."""
    make = MAKERS[kind]
    each = int(gc.is_tracked(make()))
    values = metrics_of("tracked", Toy(made, kept, 20, make), schedule([20]), Extent(1))
    assert values["tracked_peak_per_step"] == each * made
    assert values["tracked_survivors_per_step"] == each * kept
    assert values["handoff_bytes"] == 4


@pytest.mark.parametrize("kind", MAKERS)
def test_what_takes_the_place_of_the_last_step_s_objects_is_alive_at_the_peak(kind):
    """As many come as go, and a step makes them all the same."""
    make = MAKERS[kind]
    values = metrics_of("tracked", Toy(100, 0, 20, make, lets_go=False), schedule([20]), Extent(1))
    assert values["tracked_peak_per_step"] == 100 * gc.is_tracked(make())
    assert values["tracked_survivors_per_step"] == 0


@pytest.mark.parametrize("kind", MAKERS)
def test_memory_is_that_of_what_is_made_and_of_what_is_kept(kind):
    """Held against `sys.getsizeof`; at its peak a step has other things alive, or these."""
    make = MAKERS[kind]
    of = schedule([20])
    # What the first run in a process makes for good, or frees, is no step's.
    _, without, values = (
        metrics_of("memory", Toy(n, n // 10, 20, make), of, Extent(1)) for n in (0, 0, 100)
    )
    made = make()
    size = sys.getsizeof(made)
    more = {name: values[name] - without[name] for name in without if "per_step" in name}
    assert more["memory_peak_per_step"] == pytest.approx(100 * size, rel=0.05, abs=600)
    assert more["memory_kept_per_step"] == pytest.approx(10 * size, abs=8)
    assert more["allocated_blocks_kept_per_step"] in (10, 20)


def test_a_list_that_lives_and_dies_in_one_call_is_in_the_peak():
    numbers = np.arange(1000, 2024)

    def peak(step_of: Toy) -> float:
        value = metrics_of("memory", step_of, schedule([20]), Extent(1))["memory_peak_per_step"]
        assert value is not None
        return value

    passing = Toy(1, 0, 20, lambda: sum(numbers.tolist()))
    least = 1024 * (8 + sys.getsizeof(1024))
    assert least < peak(passing) - peak(Toy(1, 0, 20, int)) < 1.2 * least


def test_an_allocator_that_is_traced_already_is_refused():
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="tracemalloc traces the engine's process already"):
            MODES["memory"].watch(Toy(0, 0, 1), Extent(1))
    finally:
        tracemalloc.stop()


def test_dying_elders_do_not_hide_what_is_made():
    toy = Toy(100, 0, steps=20)
    old = [set() for _ in range(4100)]
    gc.freeze()
    step = toy.step

    def step_and_free() -> StepOutput:
        del old[-200:]
        return step()

    toy.step = step_and_free
    values = metrics_of("tracked", toy, schedule([20]), Extent(1))
    assert values["tracked_peak_per_step"] == 100
    assert values["tracked_survivors_per_step"] == -200


def leaking(keep: Callable[[int], object], steps: int = 400) -> Toy:
    """Keeps what ``keep`` makes of a step's number, until it has taken all its steps and longer."""
    toy = Toy(0, 0, steps)
    kept: list[object] = []
    step = toy.step

    def step_and_keep() -> StepOutput:
        kept.append(keep(len(kept)))
        return step()

    toy.step = step_and_keep
    return toy


def left_by(toy: Toy) -> dict[str, float | None]:
    """What mode ``leaks`` says of a toy, window and all."""
    assert window.open_window("engine", MODES["leaks"].policy, 1, False, None) == ""
    try:
        return metrics_of("leaks", toy, schedule([400]), Extent(1))
    finally:
        closed = window.close_window("engine")
        assert closed.collections == (0, 0, 0), "a full pass of the harness's own is not counted"


@pytest.mark.parametrize(
    ("keep", "objects", "blocks"),
    [
        (lambda number: {"inner": INNER}, 1, 2),
        # From 3.14 on each dictionary is tracked.
        (lambda number: {"row": 0}, int(sys.version_info >= (3, 14)), 2),
        (lambda number: 1000 + number, 0, 1),
        (lambda number: (INNER,) if number % 10 == 0 else None, 0.1, 0.1),
    ],
)
def test_what_a_step_leaves_for_good_is_counted_once_all_has_gone(keep, objects, blocks):
    """Whatever else there is, the engine's own objects among it, is less than one in ten steps."""
    values = left_by(leaking(keep))
    assert values["leaked_objects_per_step"] == pytest.approx(objects, abs=0.09)
    assert values["leaked_blocks_per_step"] == pytest.approx(blocks, abs=0.26)
    assert values["cyclic_garbage_per_step"] == values["explicit_collections"] == 0


def test_garbage_in_cycles_is_no_leak():
    def cycle(number: int) -> None:
        made: list[object] = []
        made.append(made)

    values = left_by(leaking(cycle))
    assert values["cyclic_garbage_per_step"] == pytest.approx(1, abs=0.02)
    assert values["leaked_objects_per_step"] == pytest.approx(0, abs=0.1)


def test_what_only_further_collections_untrack_has_not_gone():
    """A collection untracks a floor of tuples in tuples, where the outer was there first."""
    nested: tuple[object, ...] = ()
    for floor in range(6):
        nested = (floor, nested)
    stored = marshal.dumps(nested)
    loaded = [marshal.loads(stored) for _ in range(100)]
    values = left_by(leaking(lambda number: None))
    assert values["leaked_objects_per_step"] == pytest.approx(0, abs=0.1)
    assert len(loaded) == 100


@pytest.mark.slow
def test_strings_that_msgspec_keeps_for_a_while_are_no_blocks_of_a_step():
    """It forgets them once in so many collections: here in the window, if not just before it."""
    keys = msgspec.json.encode({f"key {number}": number for number in range(2000)})
    cache = sys.modules["msgspec._core"]

    def forget(number: int) -> None:
        if number == 200:
            gc.get_referents(*[cache] * 10)

    for visits in range(10):
        gc.get_referents(*[cache] * visits)
        assert len(msgspec.json.decode(keys)) == 2000
        values = left_by(leaking(forget))
        assert values["leaked_blocks_per_step"] == pytest.approx(0, abs=0.1)


class ReadAtOnce:
    def get_nowait(self) -> int:
        return 1


class ReadAtLength:
    def get_nowait(self) -> int:
        a = 1
        b = (a, a)
        return b[0]


@pytest.mark.parametrize("every", [0, 4])
def test_what_it_takes_to_read_a_stream_is_part_of_the_step(every):
    written = [
        sum(1 for _ in dis.get_instructions(kind.get_nowait)) for kind in (ReadAtOnce, ReadAtLength)
    ]
    at_once, at_length = (
        metrics_of(
            "opcodes", Toy(1, 0, 40), schedule([40]), Extent(1, every), lambda _, kind=kind: kind()
        )
        for kind in (ReadAtOnce, ReadAtLength)
    )
    name = "bytecodes_per_request_step"
    assert at_length[name] - at_once[name] == written[1] - written[0]


@pytest.mark.parametrize("delivery", ["per_request", "columnar"])
def test_flat_arrays_leave_the_collector_nothing_when_delivered_in_columns(delivery):
    cell = msgspec.structs.replace(CELL, representation="flat_arrays", delivery=delivery)
    of = schedule([30] * 8)
    values = metrics_of("tracked", engine(of, cell), of, Extent(8))
    if delivery == "columnar":
        assert values["tracked_peak_per_step"] < 8
    else:
        assert values["tracked_peak_per_step"] > 2 * 8


@pytest.mark.parametrize("detokenizer", ["none", "byte_table"])
def test_what_clients_get_of_columns_is_nothing_to_the_collector(detokenizer):
    """A stream a request lives as long as the request; a step adds nothing that grows with it."""
    peaks = []
    for count in (8, 32):
        cell = msgspec.structs.replace(
            CELL,
            representation="flat_arrays",
            delivery="columnar",
            detokenizer=detokenizer,
            request_streams="collector",
            batch_size=count,
        )
        of = schedule([30] * count)
        values = metrics_of("tracked", engine(of, cell), of, Extent(8))
        peaks.append(values["tracked_peak_per_step"])
    assert peaks[0] == peaks[1] < 8


@pytest.mark.parametrize("name", REPRESENTATIONS.names())
@pytest.mark.parametrize("accepted", [[1], [1, 4, 2]])
def test_the_hand_off_is_as_large_as_the_representation_says(name, accepted):
    of = schedule([9, 4, 12, 12], num_accepted=accepted)
    cell = msgspec.structs.replace(CELL, representation=name)
    nbytes, sizes = REPRESENTATIONS.load(name)().nbytes, []
    served = engine(of, cell)

    def step() -> StepOutput:
        output = served.step()
        if output.num_rows:
            sizes.append(nbytes(output.sampled))
        return output

    TrialClient(served, step, of, VirtualClock()).run()
    values = metrics_of("tracked", engine(of, cell), of, Extent(4))
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
    values = metrics_of("opcodes", engine(of), of, Extent(8))
    assert values["bytecodes_per_request_step"] > 10
    again = metrics_of("opcodes", engine(of), of, Extent(8))
    assert again["bytecodes_per_request_step"] == values["bytecodes_per_request_step"]


def churning() -> Schedule:
    """Requests that come and go all the time."""
    return schedule(np.random.default_rng(3).integers(20, 200, 70), max_concurrency=16)


@cache
def churning_bytecodes(shape: tuple[str, str], one_step_in: int = 1, seed: int = 0) -> float:
    """Of a request and step while they churn."""
    of = churning()
    cell = msgspec.structs.replace(CELL, representation=shape[0], delivery=shape[1], batch_size=16)
    values = metrics_of("opcodes", engine(of, cell), of, Extent(16, one_step_in, seed))
    return values["bytecodes_per_request_step"]


@pytest.mark.parametrize(
    ("shape", "most"),
    [
        pytest.param(("list_of_lists", "vllm_v1"), 0.02, marks=pytest.mark.slow),
        (("flat_arrays", "columnar"), 0.05),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_one_step_in_many_is_nearly_right(shape, most, seed):
    every = churning_bytecodes(shape)
    assert churning_bytecodes(shape, 13, seed) == pytest.approx(every, rel=most)


def test_one_step_of_each_so_many_is_traced_and_each_counts_for_itself():
    of = churning()
    served = engine(of)
    watch = MODES["opcodes"].watch(served, Extent(8, 13))
    client = TrialClient(served, watch.step, of, VirtualClock())
    client.run()
    num_rows = client.recorder.num_rows
    watch.results(num_rows)
    assert len(num_rows) // 13 <= watch.costs.num_steps <= -(-len(num_rows) // 13)
    rows, bytecodes = map(sum, zip(*watch.costs.samples, strict=True))
    assert rows == watch.costs.num_rows
    assert bytecodes == sum(each.bytecodes for each in watch.costs.functions)


def test_where_no_step_is_full_no_bytecodes_are_claimed():
    of = schedule([9] * 4)
    values = metrics_of("opcodes", engine(of), of, Extent(5))
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
            MODES["opcodes"].watch(served, Extent(4))
    finally:
        sys.settrace(None)


def test_a_longer_delivery_shows_in_bytecodes():
    of = schedule([30] * 8)
    columns = msgspec.structs.replace(CELL, representation="flat_arrays", delivery="columnar")
    each = metrics_of("opcodes", engine(of), of, Extent(8))["bytecodes_per_request_step"]
    at_once = metrics_of("opcodes", engine(of, columns), of, Extent(8))[
        "bytecodes_per_request_step"
    ]
    assert each is not None
    assert at_once is not None
    assert each > at_once


def test_counting_modes_keep_the_collector_still_and_the_clock_virtual():
    assert {name for name, mode in MODES.items() if mode.policy == "disabled"} == {
        "leaks",
        "opcodes",
        "grid",
        "instructions",
        "outputs",
        "cadence",
        "wire",
        "stage_bytecodes",
    }
    assert {name for name, mode in MODES.items() if mode.policy == "disabled+freeze"} == {
        "tracked",
        "memory",
    }
    assert {name for name, mode in MODES.items() if not mode.virtual_time} == {"timing"}
    assert {name for name, mode in MODES.items() if mode.vary_phase} == {"timing"}
    with_collector = {name for name, mode in MODES.items() if not mode.policy}
    assert {name for name, mode in MODES.items() if mode.fills_heap} == with_collector
    assert not MODES["counts"].probe


class Talker(Toy):
    """Sends a message each way in a step, as long as it says."""

    def __init__(self, sent: list[bytes], received: list[bytes]) -> None:
        super().__init__(0, 0, len(sent))
        self._messages = list(zip(sent, received, strict=True))[::-1]
        self._to: Callable[[str, bytes], object] | None = None

    def show_messages(self, to: Callable[[str, bytes], object] | None) -> None:
        self._to = to

    def message_fields(self, direction: str, message: bytes) -> dict[str, int]:
        return {"sampling_params.stop": message.count(b"s"), "rest": message.count(b"r")}

    def step(self) -> StepOutput:
        assert self._to is not None, "the window is open"
        for direction, message in zip(DIRECTIONS, self._messages.pop(), strict=True):
            self._to(direction, message)
        return super().step()


def test_messages_by_step_by_part_and_how_alike():
    sent = [b"ssssrrrr", b"sr", b"srr", b"srrrr", b"srrrr"]
    values = metrics_of("wire", Talker(sent, [b"rs"] * 5), schedule([5]), Extent(1))
    assert {name: value for name, value in values.items() if name.startswith("scheduler_")} == {
        "scheduler_output_bytes_per_step": 5,
        "scheduler_output_bytes_first": 8,
        "scheduler_output_bytes_last": 5,
        "scheduler_output_bytes_parameters": 1,
        "scheduler_output_bytes_prompt": 0,
        "scheduler_output_bytes_output_ids": 0,
        "scheduler_output_bytes_names": 0,
        "scheduler_output_bytes_rest": 4,
        "scheduler_output_edit_distance": 1,  # the median of 1, 2, 0
        "scheduler_output_edit_distance_first": 6,
    }
    assert values["model_runner_output_bytes_per_step"] == 2
    assert values["model_runner_output_edit_distance"] == 0
