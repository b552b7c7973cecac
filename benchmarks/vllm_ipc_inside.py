"""The inside of `vllm_ipc`: both hops of one release of vLLM, in an interpreter that has it."""

import asyncio
import json
import multiprocessing
import os
import pickle
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

BATCHES = (1, 64, 256, 1024)
PROMPT_TOKENS = 48
TRIPS, WARM_TRIPS, PACED_SECONDS, PER_SECOND = 400, 50, 2.0, 50
_forking = multiprocessing.get_context("fork")  # vLLM is imported once
Trip = Callable[[], Awaitable[object]]


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process, to the nanosecond (schedstat of proc(5))."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def ids(batch: int) -> list[str]:
    """Names as the API server gives them, with what releases since 0.20 add."""
    return [f"cmpl-{number:032x}-0-{number:08x}" for number in range(batch)]


async def measured(trip: Trip, peer: int, batch: int) -> dict[str, Any]:
    """Trips one after the other, then so many a second; of the smallest batch the silence, too."""
    for _ in range(WARM_TRIPS):
        await trip()
    found: dict[str, Any] = {}
    for name, pause in (("one_after_the_other", 0.0), ("paced", 1 / PER_SECOND)):
        count = int(PACED_SECONDS * PER_SECOND) if pause else TRIPS
        lengths = []
        own, theirs, began = cpu_seconds(os.getpid()), cpu_seconds(peer), time.perf_counter()
        for number in range(count):
            if pause:
                await asyncio.sleep(max(0.0, began + number * pause - time.perf_counter()))
            sent = time.perf_counter()
            await trip()
            lengths.append(time.perf_counter() - sent)
        wall = time.perf_counter() - began
        own, theirs = cpu_seconds(os.getpid()) - own, cpu_seconds(peer) - theirs
        found[name] = {
            "trips": count,
            "median_us": median(lengths) * 1e6,
            "p99_us": quantiles(lengths, n=100)[98] * 1e6,
            "cpu_us": own / count * 1e6,
            "peer_cpu_us": theirs / count * 1e6,
            "cpu_share": own / wall,
            "peer_cpu_share": theirs / wall,
        }
    if batch == BATCHES[0]:
        found["idle"] = idle(peer)
    return found


def idle(peer: int) -> dict[str, float]:
    """CPU seconds of the peer per second in which nothing is sent."""
    moments = []
    for wait in (0.0, 1.0, 1.0, 2.0):
        time.sleep(wait)
        moments.append(cpu_seconds(peer))
    return {"first_second": moments[1] - moments[0], "later_second": (moments[3] - moments[2]) / 2}


def engine_core(input_path: str, output_path: str, batch: int) -> None:
    """As `EngineCoreProc`: a thread that reads, one that writes, and a loop between them."""
    context = zmq.Context()
    requests: queue.Queue[Any] = queue.Queue()
    outputs: queue.Queue[Any] = queue.Queue()

    def read() -> None:
        socket = make_zmq_socket(context, input_path, zmq.DEALER, identity=b"\0\0", bind=False)
        socket.send(b"")
        decoder = MsgpackDecoder(EngineCoreRequest)
        while True:
            _, *frames = socket.recv_multipart(copy=False)
            requests.put(decoder.decode(frames))

    def write() -> None:
        socket = make_zmq_socket(context, output_path, zmq.PUSH)
        encoder, buffer = MsgpackEncoder(), bytearray()
        while True:
            frames = encoder.encode_into(outputs.get(), buffer)
            tracker = socket.send_multipart(frames, copy=False, track=True)
            if not tracker.done:
                buffer = bytearray()

    for each in (read, write):
        threading.Thread(target=each, daemon=True).start()
    step = outputs_of(batch)
    while True:
        requests.get()
        outputs.put(step)


def outputs_of(batch: int) -> Any:
    """What a step brings: a token for each request."""
    return EngineCoreOutputs(
        outputs=[EngineCoreOutput(name, [1000 + place]) for place, name in enumerate(ids(batch))],
        timestamp=time.monotonic(),
    )


def a_request() -> Any:
    """As the front end sends it; fields that a release wants besides are empty."""
    known = {
        "request_id": ids(1)[0],
        "prompt_token_ids": list(range(PROMPT_TOKENS)),
        "sampling_params": SamplingParams(),
        "arrival_time": time.time(),
    }
    needed = {
        field.name: None for field in msgspec.structs.fields(EngineCoreRequest) if field.required
    }
    return EngineCoreRequest(**(needed | known))


async def front_end(batch: int) -> dict[str, Any]:
    """As `AsyncMPClient`: sockets of asyncio, a router for requests and one end of a pipe back."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"ipc://{folder}/{name}" for name in ("in", "out")]
        peer = _forking.Process(target=engine_core, args=(*paths, batch), daemon=True)
        peer.start()
        context = zmq.asyncio.Context()
        sender = make_zmq_socket(context, paths[0], zmq.ROUTER, bind=True)
        receiver = make_zmq_socket(context, paths[1], zmq.PULL)
        identity, _ = await sender.recv_multipart()
        encoder, decoder, request = MsgpackEncoder(), MsgpackDecoder(EngineCoreOutputs), a_request()

        async def trip() -> None:
            frames = (identity, EngineCoreRequestType.ADD.value, *encoder.encode(request))
            await sender.send_multipart(frames, copy=False)
            answer = decoder.decode(await receiver.recv_multipart(copy=False))
            assert len(answer.outputs) == batch

        found = await measured(trip, peer.pid or 0, batch)
        peer.kill()
        peer.join()
        context.destroy(linger=0)
    sizes = [sum(map(len, encoder.encode(each))) for each in (request, outputs_of(batch))]
    return {"hop": "core", "batch": batch, "bytes": sizes[0], "bytes_back": sizes[1], **found}


def worker(pipe: Any, batch: int) -> None:
    """As `WorkerProc`: reads steps off one queue and answers by another."""
    steps = MessageQueue.create_from_handle(pipe.recv(), 0)
    answers = MessageQueue(1, 1)
    pipe.send(answers.export_handle())
    steps.wait_until_ready()
    answers.wait_until_ready()
    answer = answer_of(batch)
    while True:
        steps.dequeue()
        answers.enqueue(answer)


def step_of(batch: int) -> tuple[Any, ...]:
    """A call as the executor sends it, with what a step says of requests that decode."""
    names = ids(batch)
    step = {
        "req_ids": names,
        "num_computed_tokens": list(range(1000, 1000 + batch)),
        "num_scheduled_tokens": dict.fromkeys(names, 1),
    }
    return "execute_model", (step,), {}, 0


def answer_of(batch: int) -> tuple[int, dict[str, Any]]:
    """Status, and a token for each request."""
    tokens = [[1000 + place] for place in range(batch)]
    return 1, {"req_ids": ids(batch), "sampled_token_ids": tokens}


async def executor(batch: int) -> dict[str, Any]:
    """As `MultiprocExecutor` with one worker."""
    own, theirs = _forking.Pipe()
    peer = _forking.Process(target=worker, args=(theirs, batch), daemon=True)
    peer.start()
    steps = MessageQueue(1, 1)
    own.send(steps.export_handle())
    answers = MessageQueue.create_from_handle(own.recv(), 0)
    steps.wait_until_ready()
    answers.wait_until_ready()
    step = step_of(batch)

    async def trip() -> None:
        steps.enqueue(step)
        _, answer = answers.dequeue()
        assert len(answer["req_ids"]) == batch

    found = await measured(trip, peer.pid or 0, batch)
    peer.kill()
    peer.join()
    sizes = [len(pickle.dumps(each, 5)) for each in (step, answer_of(batch))]
    return {"hop": "worker", "batch": batch, "bytes": sizes[0], "bytes_back": sizes[1], **found}


if __name__ == "__main__":
    import msgspec
    import zmq.asyncio
    from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine import (
        EngineCoreOutput,
        EngineCoreOutputs,
        EngineCoreRequest,
        EngineCoreRequestType,
    )
    from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

    try:
        from vllm.utils.network_utils import make_zmq_socket
    except ImportError:  # to 0.11.0
        from vllm.utils import make_zmq_socket
    records = [asyncio.run(hop(batch)) for hop in (front_end, executor) for batch in BATCHES]
    print(json.dumps(records))
    sys.stdout.flush()
    os._exit(0)  # what the queues leave open would be closed in an order that vLLM does not mind
