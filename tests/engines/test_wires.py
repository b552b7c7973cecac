"""What crosses the worker boundary comes out as it went in, and takes as few bytes as it should."""

from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest
from examples import examples
from harness_free import null_config
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from engines.builtin.registries import REPRESENTATIONS, WIRES
from engines.builtin.wire import LostStateError, WireError
from engines.builtin.wire.int_arrays import pack, unpack
from engines.builtin.wire.names import asked_seconds
from engines.builtin.worker import NOBODY, ModelRunnerOutput, NewRequests, SchedulerOutput
from engines.protocol import Sampling

ROWS, BLOCK = 12, 4
CHECKED = ["pickle5", "msgpack", "msgpack-delta", "columns"]
"""Of a pickle what follows it is not looked at."""
every_wire = pytest.mark.parametrize("name", WIRES.names())


def ends(name: str, representation: str = "flat_arrays", rows: int = ROWS):
    """Both ends of a wire."""
    config = null_config(representation=representation, max_num_seqs=rows)
    return [WIRES.load(name)(config) for _ in "12"]


def joined(buffers) -> memoryview:
    return memoryview(b"".join(buffers))


class Crowd:
    """Requests that come, go on and give up their rows, as a scheduler would send them."""

    def __init__(self, random: Random, rows: int = ROWS) -> None:
        self.random, self.free = random, list(range(rows))
        self.computed: dict[int, int] = {}
        self.blocks: dict[int, int] = {}
        self.number, self.next_block = 0, 0

    def step(self) -> SchedulerOutput:
        random, new = self.random, []
        for row in [row for row in self.computed if random.random() < 0.1]:
            del self.computed[row], self.blocks[row]
            self.free.append(row)
        rows = [row for row in self.computed if random.random() < 0.9]
        counts = [1] * len(rows)
        while self.free and random.random() < 0.4:
            row = self.free.pop(random.randrange(len(self.free)))
            prompt = np.array(random.choices(range(128_256), k=random.randint(1, 9)), np.int32)
            new.append((row, self.number, prompt, 0, random.randint(0, len(prompt) - 1)))
            self.computed[row], self.blocks[row] = 0, 0
            rows.append(row)
            counts.append(len(prompt))
            self.number += random.choice([1, 2**33])
        given = []
        for row, count in zip(rows, counts, strict=True):
            self.computed[row] += count
            while self.blocks[row] * BLOCK < self.computed[row]:
                given.append((row, self.blocks[row], self.next_block))
                self.blocks[row] += 1
                self.next_block += 1
        own = [draw_sampling(random) for _ in new] if random.random() < 0.5 else []
        samples = np.array([random.random() < 0.9 for _ in rows], np.bool_)
        blocks = np.array(given, np.int32).reshape(-1, 3)
        return SchedulerOutput(
            np.array(rows, np.int32),
            np.array(counts, np.int32),
            None if samples.all() else samples,
            NewRequests(*map(list, zip(*new, strict=True)), own if any(own) else ())
            if new
            else NOBODY,
            *(np.ascontiguousarray(column) for column in blocks.T),
        )

    def tokens(self, step: SchedulerOutput, representation: str) -> ModelRunnerOutput:
        counts = np.array([self.random.randint(1, 4) for _ in step.rows], np.int32)
        if step.samples is not None:
            counts[~step.samples] = 0
        host = np.full((len(counts), 4), -1, np.int32)
        for row, count in enumerate(counts.tolist()):
            host[row, :count] = self.random.choices(range(128_256), k=count)
        made = REPRESENTATIONS.load(representation)()
        sampled = made.from_device(host, counts)
        return ModelRunnerOutput(sampled, self.random.randint(0, 2**40), 3, 0.5)


def draw_sampling(random: Random) -> Sampling | None:
    if random.random() < 0.5:
        return None
    seed = random.choice([-1, 0, 2**32 - 1])
    return Sampling(random.choice([0.0, 0.7, 1.0]), random.choice([0, 50]), 0.9, seed)


def plain(value):
    """As Python values, so that == says whether two are alike, dtypes included."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.tolist())
    if hasattr(value, "numpy"):
        return plain(value.numpy())
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    return value


@every_wire
@pytest.mark.parametrize("representation", REPRESENTATIONS.names())
def test_steps_and_tokens_come_out_as_they_went_in(name, representation):
    scheduler, worker = ends(name, representation)
    crowd = Crowd(Random(3))
    tables: dict[int, list[int]] = {}
    for _ in range(80):
        step = crowd.step()
        if not len(step.rows):
            continue
        for row in step.new.rows:
            tables[row] = []
        for row, block in zip(step.block_rows.tolist(), step.block_ids.tolist(), strict=True):
            tables[row].append(block)
        got = worker.decode_step(joined(scheduler.encode_step(step)))
        if name == "full":  # it sends the whole tables, and who is new in the order of the rows
            held = [(row, block) for row in step.rows.tolist() for block in tables[row]]
            assert list(zip(got.block_rows.tolist(), got.block_ids.tolist(), strict=True)) == held
            assert plain(got[:4]) == plain(step[:4])
        else:
            assert plain(got) == plain(step)
        tokens = crowd.tokens(step, representation)
        back = scheduler.decode_tokens(joined(worker.encode_tokens(tokens)))
        if name == "full":  # columns are as wide as the widest row
            made = REPRESENTATIONS.load(representation)()
            ours, theirs = (
                list(map(list_of, made.per_request(each.sampled))) for each in (back, tokens)
            )
            assert ours == theirs
            assert back[1:] == tokens[1:]
        else:
            assert plain(back) == plain(tokens)


def list_of(tokens) -> list[int]:
    return [tokens] if isinstance(tokens, int) else list(tokens)


@examples(200)
@given(arrays_of.arrays(np.int32, st.integers(0, 20)))
def test_an_array_is_packed_and_unpacked(array):
    got = unpack(pack(array))
    assert got.dtype == np.int32
    assert got.tolist() == array.tolist()


@pytest.mark.parametrize(
    ("array", "most"),
    [
        (np.arange(1000), 3),
        (np.full(1000, 7), 3),
        (np.arange(900, 0, -3), 3),
        (np.array([1, 2, 4] * 100), 301),
        (np.array([1, 2, 65_535] * 100), 601),
        (np.array([1, 2, 65_536] * 100), 1201),
        (np.array([-1, 5, 9] * 10), 121),
    ],
)
def test_a_packed_array_is_as_narrow_as_it_can_be(array, most):
    assert len(pack(array.astype(np.int32))) == most


@every_wire
def test_data_that_was_cut_short_is_refused(name):
    random = Random(5)
    crowd = Crowd(random)
    scheduler, worker = ends(name)
    for step in islice((step for step in iter(crowd.step, None) if len(step.rows)), 8):
        sent = bytes(joined(scheduler.encode_step(step)))
        back = bytes(joined(worker.encode_tokens(crowd.tokens(step, "flat_arrays"))))
        for cut in (1, len(sent) // 2, len(sent)):
            with pytest.raises(WireError):
                ends(name)[1].decode_step(memoryview(sent)[:-cut])
        for cut in (1, len(back) // 2, len(back)):
            with pytest.raises(WireError):
                scheduler.decode_tokens(memoryview(back)[:-cut])
        worker.decode_step(memoryview(sent))


@pytest.mark.parametrize("name", CHECKED)
def test_data_with_more_behind_it_is_refused(name):
    scheduler, worker = ends(name)
    data = bytes(joined(scheduler.encode_step(Crowd(Random(5)).step())))
    with pytest.raises(WireError):
        worker.decode_step(memoryview(data + b"\0"))


@pytest.mark.parametrize("packed", [b"", b"\3abc", b"\2a", b"\4abcde"])
def test_an_array_without_a_width_is_refused(packed):
    with pytest.raises(WireError):
        unpack(packed)


def test_a_difference_to_a_state_that_is_not_there_is_told_and_mended():
    random = Random(9)
    scheduler, worker = ends("msgpack-delta")
    crowd = Crowd(random)
    lost = 0
    for _ in range(300):
        step = crowd.step()
        data = joined(scheduler.encode_step(step))
        if random.random() < 0.2:
            continue  # it never arrives
        try:
            got = worker.decode_step(data)
        except LostStateError:
            lost += 1
            got = worker.decode_step(joined(scheduler.encode_whole(step, 0)))
        assert plain(got) == plain(step)
    assert lost > 10


def steady(count: int, steps: int):
    """A full batch that decodes: every sixteenth step each request gets a block."""
    rows = np.arange(count, dtype=np.int32)
    prompts = [np.arange(48, dtype=np.int32)] * count
    zeros = [0] * count
    new = NewRequests(rows.tolist(), rows.tolist(), prompts, zeros, zeros)
    blocks = np.repeat(rows, 3), np.tile(np.arange(3, dtype=np.int32), count)
    ids = np.arange(3 * count, dtype=np.int32)
    none = np.empty(0, np.int32)
    yield SchedulerOutput(rows, np.full(count, 48, np.int32), None, new, *blocks, ids)
    for number in range(steps):
        given = [none] * 3
        if number % 16 == 0:
            first = 3 * count + number // 16 * count
            given = [rows, np.full(count, 3 + number // 16, np.int32), first + rows]
        yield SchedulerOutput(rows, np.ones(count, np.int32), None, NOBODY, *given)


def bytes_of_steps(name: str, count: int) -> list[int]:
    scheduler, _ = ends(name, rows=count)
    return [sum(map(len, scheduler.encode_step(step))) for step in steady(count, 160)][1:]


def test_a_steady_step_takes_a_fiftieth_of_everything_and_a_twentieth_of_a_pickle():
    full, pickled, delta = (
        np.array(bytes_of_steps(name, 256)) for name in ("full", "pickle", "msgpack-delta")
    )
    assert delta.mean() * 50 <= full.mean()
    assert np.median(delta) * 20 <= np.median(pickled)
    assert delta.mean() * 10 <= pickled.mean()


@pytest.mark.parametrize(("vocab_size", "each"), [(65_536, 2), (128_256, 4)])
def test_tokens_take_what_they_need_and_little_else(vocab_size, each):
    random = np.random.default_rng(1)
    values = random.integers(0, vocab_size, 256).astype(np.int32)
    offsets = np.arange(257, dtype=np.int32)
    flat = REPRESENTATIONS.load("flat_arrays")().from_buffers([values, offsets])
    _, worker = ends("msgpack-delta")
    taken = sum(map(len, worker.encode_tokens(ModelRunnerOutput(flat, 10**6, 10**4, 1e-3))))
    assert taken <= 1.2 * each * 256 + 32


@pytest.mark.parametrize(("seconds", "is_taken"), [("0", True), ("60", True), ("60.01", False)])
def test_a_message_is_looked_for_during_a_minute_at_most(seconds, is_taken):
    config = replace(null_config(), wire_spin=seconds)
    if is_taken:
        assert asked_seconds(config) == float(seconds)
        return
    with pytest.raises(ValueError, match="0 to 60"):
        asked_seconds(config)
