"""How messages get to several ranks and back: whole, in order, and told where they cannot."""

import os
import select
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
import rpc_calls
from examples import every, examples
from harness_free import Request, add, draw_requests, null_config, run
from hypothesis import given
from hypothesis import strategies as st
from processes import HANG_SECONDS, children, descriptors, opened_since

from engines.builtin.engine import Engine
from engines.builtin.registries import TRANSPORTS
from engines.builtin.transport.ring import RingReader, RingWriter, open_memory
from engines.builtin.worker.channel import ByteChannel
from engines.protocol import EngineDeadError

NUMBERS = count()
WORKERS = [("process", 1), ("process", 2), ("driver", 2)]


def every_way(quick: tuple[str, str, int], transports: Sequence[str] = TRANSPORTS.names()):
    """Transport, worker and ranks; one of them quick, since a rank takes seconds to start.

    Of the others the first so many, in an order in which each transport soon has had each worker.
    """
    ways = [
        (transport, *WORKERS[(nth + turn) % len(WORKERS)])
        for turn in range(len(WORKERS))
        for nth, transport in enumerate(transports)
    ]
    chosen = ways[: len(ways) // every()]
    params = [
        quick,
        *(pytest.param(*way, marks=pytest.mark.slow) for way in chosen if way != quick),
    ]
    return pytest.mark.parametrize(("transport", "worker", "ranks"), params)


@contextmanager
def rings(num_readers: int, spin_seconds: float = 0.0) -> Iterator:
    """A writer and its readers, each with its end of a channel."""
    descriptor = open_memory(num_readers)
    pairs = [ByteChannel.pair() for _ in range(num_readers)]

    def listen(seconds: float) -> None:
        select.select([], [], [], seconds)

    writer = RingWriter(descriptor, num_readers, [here for here, _ in pairs])
    readers = [
        RingReader(descriptor, num_readers, n, there, spin_seconds)
        for n, (_, there) in enumerate(pairs)
    ]
    os.close(descriptor)
    yield lambda *buffers: writer.send(listen, *buffers), readers, pairs
    for pair in pairs:
        for end in pair:
            end.close()


def read_all(reader: RingReader, channel: ByteChannel, num_messages: int) -> list[bytes]:
    got = []
    while len(got) < num_messages:
        if (message := reader.take()) is not None:
            got.append(message)
        elif not reader.spin(lambda: False) and reader.park():
            select.select([channel], [], [])
            channel.receive()
    return got


LENGTHS = st.one_of(st.integers(0, 300), st.sampled_from([1 << 20, (1 << 20) + 1, 3 << 20]))


@examples(30)
@given(
    st.lists(st.lists(LENGTHS, min_size=1, max_size=3), max_size=40),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.001]),
)
def test_each_reader_of_a_ring_gets_every_message_whole_and_in_order(lengths, num_readers, spin):
    """Also those that are longer than a slot, and more of them than there are slots."""
    messages = [
        [bytes((n + k) % 251 for k in range(1)) * each for each in parts]
        for n, parts in enumerate(lengths)
    ]
    with rings(num_readers, spin) as (send, readers, pairs):
        got: list[list[bytes]] = [[] for _ in readers]

        def read(n: int) -> None:
            got[n] = read_all(readers[n], pairs[n][1], len(messages))

        numbers = range(num_readers)
        threads = [threading.Thread(target=read, args=(n,), daemon=True) for n in numbers]
        for thread in threads:
            thread.start()
        for message in messages:
            send(*message)
        for thread in threads:
            thread.join(timeout=HANG_SECONDS)
        assert got == [[b"".join(parts) for parts in messages]] * num_readers


def test_a_reader_that_parks_is_rung_and_others_are_not():
    with rings(2) as (send, readers, pairs):
        assert readers[0].park()
        send(b"one")
        readable, _, _ = select.select([there for _, there in pairs], [], [], 0)
        assert readable == [pairs[0][1]]
        assert not readers[1].park(), "it is there already"
        assert [reader.take() for reader in readers] == [b"one", b"one"]


def test_spinning_is_counted_and_bounded():
    with rings(1, spin_seconds=0.005) as (send, (reader,), _):
        assert not reader.spin(lambda: False)
        assert 0 < reader.spun_ns < 60e9
        assert not reader.spin(lambda: True), "something else is to be done"
        send(b"")
        assert reader.spin(lambda: False)


def test_no_room_for_the_memory_is_said_in_a_sentence(tmp_path, monkeypatch, no_file_above):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refused = pytest.raises(ValueError, match=r"^--wire …shared-memory: no room for 8 MiB of mem")
    with no_file_above(1 << 20), refused:
        Engine(null_config(worker="process", wire="shared-memory"))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def torch_has_its_descriptors():
    """Of its first group a process keeps some for good."""
    Engine(null_config(worker="process", wire="gloo")).shutdown()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, torch_has_its_descriptors):
    """Start engines whose ranks can import `rpc_calls`; nothing of them is left."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    before, opened = children(), descriptors()
    engines, wires = [], []

    def start(transport: str, worker: str = "process", ranks: int = 1, **fields) -> Engine:
        wires.append(f"pickle+{transport}")
        config = null_config(worker=worker, wire=wires[-1], tensor_parallel_size=ranks, **fields)
        engines.append(Engine(config))
        return engines[-1]

    yield start
    while engines:
        engines.pop().shutdown()
    assert children() <= before
    if not any("gloo" in wire for wire in wires):  # whose threads close theirs by and by
        assert not opened_since(opened)


def pids(engine: Engine) -> list[int]:
    return [pid for role, pid in engine.collective_rpc(rpc_calls.describe) if role == "worker"]


def run_some(engine: Engine, requests: int = 4) -> None:
    for _ in range(requests):
        add(engine, Request(next(NUMBERS), 20, 20, (), 0, None))
    while engine.has_unfinished_requests():
        engine.step()


def run_on(engine: Engine) -> None:
    """Until it is noticed that a rank is gone, or the way to it is full."""
    while True:
        run_some(engine)


@pytest.mark.slow
@every_way(quick=("shared-memory", "process", 2))
def test_a_rank_that_is_killed_is_named(start, transport, worker, ranks):
    """Whichever it is, and whether anybody waits for it or not."""
    engine = start(transport, worker, ranks)
    victim = pids(engine)[-1]
    add(engine, Request(next(NUMBERS), 20, 20, (), 0, None))
    engine.step()
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(EngineDeadError, match=rf"\(pid {victim}\) was killed by SIGKILL$"):
        run_on(engine)


@pytest.mark.slow
@every_way(quick=("sockets", "driver", 2), transports=["sockets", "shared-memory"])
def test_a_rank_that_is_stopped_is_named(start, transport, worker, ranks):
    engine = start(transport, worker, ranks)
    victim = pids(engine)[-1]
    os.kill(victim, signal.SIGSTOP)
    try:
        with pytest.raises(EngineDeadError, match=rf"\(pid {victim}\) is stopped; whoever sent"):
            run_on(engine)
    finally:
        os.kill(victim, signal.SIGCONT)


@pytest.mark.slow
@every_way(quick=("gloo", "process", 1))
def test_an_exception_in_a_rank_is_told(start, transport, worker, ranks):
    engine = start(transport, worker, ranks)
    with pytest.raises(EngineDeadError, match=r"^the worker process failed: LookupError: .*weight"):
        engine.collective_rpc(rpc_calls.fail, "worker")


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS.names())
def test_a_broadcast_is_written_once_however_many_ranks_get_it(start, transport):
    sent = []
    for ranks in (1, 3):
        engine = start(transport, ranks=ranks)
        before = engine.wire_bytes
        run_some(engine, 8)
        sent.append(engine.wire_bytes - before)
    once = sent[1] < 1.3 * sent[0]
    assert once == (transport != "sockets")


@pytest.mark.slow
def test_what_a_driver_broadcasts_in_full_grows_with_the_tokens_that_stay():
    """As it does where they cross."""
    sent = []
    for worker, ranks in (("process", 1), ("driver", 2)):
        config = null_config(worker=worker, wire="full", tensor_parallel_size=ranks)
        engine = Engine(config)
        messages = sent_to_ranks(engine)
        run(engine, [Request(index, 20, 20, (), 0, None) for index in range(4)])
        engine.shutdown()
        sent.append([len(message) for message in messages])
    assert sent[0] == sent[1]
    assert sent[0][-1] > sent[0][1]


def sent_to_ranks(engine: Engine) -> list[bytes]:
    messages: list[bytes] = []

    def keep(direction: str, message: bytes) -> None:
        if direction == "scheduler_output":
            messages.append(message)

    engine.show_messages(keep)
    return messages


@pytest.mark.slow
def test_two_engines_with_ranks_of_their_own_in_one_interpreter(start):
    """Each gives the tokens that it gives alone, whichever takes a step."""
    random = Random(3)
    ways = [("sockets", "process", 2), ("shared-memory", "driver", 2), ("gloo", "process", 2)]
    engines = [start(*way, seed=seed) for seed, way in enumerate(ways)]
    requests = draw_requests(random, engines[0].config, aborts=False)
    alone = [run(Engine(null_config(seed=seed)), requests).tokens for seed in range(3)]
    for engine in engines:
        for request in requests:
            add(engine, request._replace(add_at=0))
    while any(engine.has_unfinished_requests() for engine in engines):
        engine = random.choice(engines)
        if engine.has_unfinished_requests():
            engine.step()
    for engine, expected in zip(engines, alone, strict=True):
        got = {index: engine.output_token_ids(index).tolist() for index in expected}
        assert got == expected


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"wire": "pickl"}, "unknown wire 'pickl'; did you mean pickle"),
        ({"wire": "pickle+sharedmemory"}, "unknown transport of a wire 'sharedmemory'; did you "),
        ({"wire": "pickle+"}, "unknown transport of a wire ''"),
        ({"wire": "gloo", "output_processing": "overlapped"}, "--wire gloo and --output-.*inline"),
        ({"wire": "msgpack-delta+gloo"}, "--wire msgpack-delta.gloo: what one rank has lost"),
        ({"wire_spin": "1"}, "--axis wire-spin=1 and --wire pickle: .*use --wire shared-memory"),
        ({"wire_spin": "soon"}, "--axis wire-spin=soon: must be auto or seconds"),
        ({"wire_spin": "nan"}, "--axis wire-spin=nan: must be auto or seconds"),
        ({"wire_spin": "-1"}, "--axis wire-spin=-1: must be auto or seconds"),
        (
            {"wire": "shared-memory", "wire_spin": "1", "tensor_parallel_size": 4096},
            r"--axis wire-spin=1: 4097 processes on \d+ cores would take",
        ),
        ({"worker": "driver"}, "--worker driver: .*--axis tensor-parallel=2"),
    ],
)
def test_what_does_not_go_together_is_refused(fields, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        Engine(replace(null_config(worker="process"), **fields))
