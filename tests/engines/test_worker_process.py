"""The boundary: whole messages both ways, and one sentence when the other side is gone."""

import os
import signal
import socket
import struct
import threading
from pathlib import Path

import numpy as np
import psutil
import pytest
import rpc_calls
from harness_free import Request, add, null_config
from processes import HANG_SECONDS, children

from engines.builtin.engine import Engine
from engines.builtin.wire import pickled
from engines.builtin.wire.pickled import Pickled
from engines.builtin.worker.channel import ByteChannel, ChannelClosedError
from engines.builtin.worker.process import ProcessWorker
from engines.protocol import EngineDeadError, SamplingParams


@pytest.fixture
def ends():
    here, there = map(ByteChannel, socket.socketpair())
    yield here, there
    here.close()
    there.close()


def test_large_messages_in_both_directions_at_once(ends):
    """Each end has far more to send than the socket holds, and neither reads first."""
    here, there = ends
    messages = [os.urandom(3 << 20) for _ in range(3)]
    received: list[bytes] = []

    def other_end():
        for message in messages:
            there.send(message)
        received.extend(there.recv() for _ in messages)

    thread = threading.Thread(target=other_end, daemon=True)
    thread.start()
    for message in reversed(messages):
        here.send(message)
    assert [here.recv() for _ in messages] == messages
    thread.join(timeout=HANG_SECONDS)
    assert received == messages[::-1]
    assert here.num_bytes == there.num_bytes == 6 * (8 + (3 << 20))


def test_messages_come_whole_however_they_arrive():
    raw, other = socket.socketpair()
    channel = ByteChannel(other)
    stream = b"".join(struct.pack("<Q", len(m)) + m for m in (b"one", b"", b"three"))
    for cut in range(len(stream) + 1):
        raw.sendall(stream[:cut])
        raw.sendall(stream[cut:])
        assert [channel.recv() for _ in range(3)] == [b"one", b"", b"three"]
    raw.close()
    channel.close()


@pytest.mark.parametrize("sent", [b"", b"\x05\x00", struct.pack("<Q", 5) + b"trun"])
def test_a_peer_that_stops_in_the_middle(sent):
    raw, other = socket.socketpair()
    channel = ByteChannel(other)
    raw.sendall(sent)
    raw.close()
    with pytest.raises(ChannelClosedError):
        channel.recv()
    with pytest.raises(ChannelClosedError):
        channel.send(bytes(1 << 22))
    channel.close()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch):
    """Start engines with a worker process that can import `rpc_calls`."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
    before = children()
    engines = []

    def start(**fields) -> Engine:
        engines.append(Engine(null_config(worker="process", **fields)))
        return engines[-1]

    yield start
    for engine in engines:
        engine.shutdown()
    assert children() <= before, "a worker was left behind"


def add_requests(engine: Engine, count: int = 4) -> None:
    for index in range(count):
        add(engine, Request(index, 20, 20, (), 0, None))


def drain(engine: Engine) -> int:
    steps = 0
    while engine.has_unfinished_requests():
        engine.step()
        steps += 1
    return steps


class CountingWire(Pickled):
    """A wire that adds up what goes through it, as the messages are framed."""

    def __init__(self) -> None:
        self.sent, self.received = 0, 0

    def encode_step(self, step):
        buffers = super().encode_step(step)
        self.sent += sum(map(len, buffers)) + 9
        return buffers

    def decode_tokens(self, data):
        self.received += len(data) + 9
        return super().decode_tokens(data)


def test_rpc_hook_and_bytes(start, monkeypatch):
    wire = CountingWire()
    monkeypatch.setattr(pickled, "Pickled", lambda config: wire)
    others = children()
    engine = start(output_processing="overlapped")
    (engine_role, here), (worker_role, there) = engine.collective_rpc(rpc_calls.describe)
    assert (engine_role, worker_role, here) == ("engine", "worker", os.getpid())
    assert [each.pid for each in children() - others] == [there]
    engine.collective_rpc(rpc_calls.count_busy)
    before = engine.wire_bytes
    assert (wire.sent, wire.received) == (0, 0)
    add_requests(engine)
    engine.step()
    steps = drain(engine)
    assert wire.sent > 4 * 20 * 4, "the prompts cross"
    assert wire.received > 0
    assert engine.wire_bytes - before == wire.sent + wire.received
    assert engine.collective_rpc(rpc_calls.read_busy) == [steps, steps]
    engine.shutdown()
    engine.shutdown()
    assert not psutil.pid_exists(there)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "transport"),
    [
        ("inline", "sockets"),
        ("overlapped", "shared-memory"),
        pytest.param("inline", "shared-memory", marks=pytest.mark.slow),
        pytest.param("overlapped", "sockets", marks=pytest.mark.slow),
    ],
)
def test_a_call_between_two_steps_loses_no_token(start, mode, transport):
    def outputs(calls: bool) -> list[list[int]]:
        engine = start(output_processing=mode, wire=f"pickle+{transport}")
        add_requests(engine)
        while engine.has_unfinished_requests():
            engine.step()
            if calls:
                roles = [role for role, _ in engine.collective_rpc(rpc_calls.describe)]
                assert roles == ["engine", "worker"]
        return [list(engine.output_token_ids(index)) for index in range(4)]

    assert outputs(calls=True) == outputs(calls=False)


@pytest.mark.slow
def test_the_device_has_its_next_step_before_the_last_is_waited_for(start):
    """So it never stands still while tokens are handed over, sent and processed."""
    engine = start(output_processing="overlapped")
    engine.collective_rpc(rpc_calls.end_steps_with_the_next, 20)
    add_requests(engine)
    drain(engine)
    assert engine.collective_rpc(rpc_calls.seen_next) == [None, [True] * 20]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["sockets", "shared-memory"])
def test_a_rank_that_nobody_waits_for_has_two_steps_under_way_at_most(start, transport):
    """However late it is: what a third would be given is memory that the first is read from."""
    fields = {"output_processing": "overlapped", "wire": f"pickle+{transport}"}
    engine = start(tensor_parallel_size=2, **fields)
    engine.collective_rpc(rpc_calls.fall_behind)
    add_requests(engine)
    assert drain(engine) > 10
    assert engine.collective_rpc(rpc_calls.most_under_way) == [None, None, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "transport", "ranks"),
    [
        ("inline", "sockets", 1),
        ("overlapped", "shared-memory", 1),
        pytest.param("overlapped", "sockets", 2, marks=pytest.mark.slow),
        pytest.param("inline", "shared-memory", 2, marks=pytest.mark.slow),
    ],
)
def test_a_worker_that_has_lost_its_state_is_sent_a_whole_step(start, mode, transport, ranks):
    """Though others are ahead of it, or it has been sent more since."""
    fields = {"output_processing": mode, "max_num_seqs": 3}
    wire = f"msgpack-delta+{transport}"
    forgetful = start(**fields, wire=wire, tensor_parallel_size=ranks)
    other = Engine(null_config(**fields))
    forgetful.collective_rpc(rpc_calls.forget_now_and_then)
    for engine in (forgetful, other):
        add_requests(engine, 9)
        drain(engine)
    _, *lost = forgetful.collective_rpc(rpc_calls.num_lost)
    assert min(lost) > 5
    for index in range(9):
        ours, theirs = (engine.output_token_ids(index) for engine in (forgetful, other))
        assert ours.tolist() == theirs.tolist()


def test_in_process_has_no_other_process():
    engine = Engine(null_config())
    assert engine.collective_rpc(rpc_calls.describe) == [("engine", os.getpid())]
    assert engine.wire_bytes == 0
    engine.shutdown()
    engine.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inline", "overlapped"])
def test_a_worker_killed_in_the_middle_of_a_step(start, mode):
    engine = start(output_processing=mode)
    (_, (_, pid)) = engine.collective_rpc(rpc_calls.describe)
    engine.collective_rpc(rpc_calls.die_when_busy)
    add_requests(engine)
    sentence = rf"^the worker process \(pid {pid}\) was killed by SIGKILL$"
    with pytest.raises(EngineDeadError, match=sentence):
        drain(engine)
    assert not psutil.pid_exists(pid)
    with pytest.raises(EngineDeadError, match=sentence):
        engine.step()


@pytest.mark.slow
def test_a_worker_killed_from_outside(start):
    engine = start()
    (_, (_, pid)) = engine.collective_rpc(rpc_calls.describe)
    add_requests(engine)
    engine.step()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineDeadError, match=rf"\(pid {pid}\) was killed by SIGKILL$"):
        drain(engine)


@pytest.mark.slow
@pytest.mark.landing
def test_an_exception_in_the_worker(start):
    engine = start()
    with pytest.raises(EngineDeadError, match=r"^the worker process failed: LookupError: .*weight"):
        engine.collective_rpc(rpc_calls.fail, "worker")
    with pytest.raises(EngineDeadError):
        engine.collective_rpc(rpc_calls.describe)


@pytest.mark.slow
def test_tokens_that_cannot_be_read_end_the_run(start):
    engine = start(wire="columns")
    engine.collective_rpc(rpc_calls.cut_tokens)
    add_requests(engine)
    with pytest.raises(EngineDeadError, match=r"^a worker process sent what cannot be read: a mes"):
        drain(engine)


@pytest.mark.slow
def test_a_worker_that_cannot_start(start, monkeypatch, tmp_path):
    """A name that only this process knows; the failed worker is not left behind."""
    info = tmp_path / "here_only-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: here-only\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[gcbench.representations]\n"
        "here_only = engines.builtin.representations.list_of_lists:ListOfLists\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))  # no child has it
    with pytest.raises(ValueError, match="unknown representation 'here_only'"):
        start(representation="here_only")


@pytest.mark.slow
def test_a_call_that_is_refused_leaves_the_worker_at_work(start):
    engine = start()
    with pytest.raises(ValueError, match=r"^not on a Sunday$"):
        engine.collective_rpc(rpc_calls.refuse, "worker", "not on a Sunday")
    add_requests(engine)
    assert drain(engine)


@pytest.mark.parametrize("order", [1, -1])
def test_what_one_rank_does_not_say_the_device_does_not(monkeypatch, order):
    """A GPU without room for the measurement has no ceilings."""
    ranks = [{"bytes": 1.0, "copy_bytes_per_second": 3.0}, {"bytes": 2.0}]
    worker = ProcessWorker.__new__(ProcessWorker)
    monkeypatch.setattr(worker, "rpc", lambda function, args: ranks[::order])
    assert worker.device_stats() == {"bytes": 3.0}


@pytest.mark.slow
def test_prompts_of_megabytes_cross(start):
    engine = start(max_model_len=3_000_000, max_num_batched_tokens=3_000_000, block_size=4096)
    engine.add_request(0, np.zeros(2_000_000, np.int32), SamplingParams(3))
    drain(engine)
    assert len(engine.output_token_ids(0)) == 3
    assert engine.wire_bytes > 8_000_000
