"""What does it take to read a step's tokens, and to hand them to another process?

    python benchmarks/token_copies.py [RESULT.json]

vLLM #22754: `tolist` waits for a stream, a pinned copy with an event of its own for that copy
alone. Both read 1,024 tokens of a short step, with nothing beside them and with a large copy under
way on another stream. vLLM #6241: the tokens go to a process that makes a list of them, as bytes of
a pinned copy, as a CUDA IPC handle, or as a pickled tensor of the device; whether that process then
has a CUDA context says what its memory costs. Medians of 200, µs; written after each way.
The last line of output is one JSON document.
"""

import argparse
import json
import pickle
import sys
import time
from collections.abc import Callable
from io import BytesIO
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import torch
import torch.multiprocessing  # says how a device's tensor is pickled
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.files import indented  # noqa: E402
from harness.machine.describe import describe  # noqa: E402

NUM_TOKENS, TIMES, BESIDE_BYTES = 1024, 200, 256 << 20
SMALL_TIMES, SMALL_BESIDE_BYTES = 2, 1 << 16
Read = Callable[[Tensor], list[int]]


def readers() -> dict[str, Read]:
    """Ways to a list of the tokens on the host."""
    pinned = torch.empty(NUM_TOKENS, dtype=torch.int32, pin_memory=True)
    stream, event = torch.cuda.Stream(), torch.cuda.Event()

    def own_stream(tokens: Tensor) -> list[int]:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            pinned.copy_(tokens, non_blocking=True)
            event.record(stream)
        event.synchronize()
        return pinned.tolist()

    def same_stream(tokens: Tensor) -> list[int]:
        pinned.copy_(tokens, non_blocking=True)
        event.record()
        event.synchronize()
        return pinned.tolist()

    def whole_device(tokens: Tensor) -> list[int]:
        pinned.copy_(tokens, non_blocking=True)
        torch.cuda.synchronize()
        return pinned.tolist()

    return {
        "tolist": lambda tokens: tokens.tolist(),
        "pinned copy and its event": same_stream,
        "pinned copy on a stream of its own": own_stream,
        "pinned copy, then all of the device": whole_device,
    }


def read_times(read: Read, times: int, beside: int) -> dict[str, float]:
    """µs on the host from the step's launch to the list, alone and beside a copy."""
    gpu = torch.device("cuda")
    logits = torch.randn(NUM_TOKENS, 4096, device=gpu)
    large = torch.empty(beside, dtype=torch.uint8, pin_memory=True)
    target, other = torch.empty(beside, dtype=torch.uint8, device=gpu), torch.cuda.Stream()
    found = {}
    for name, copies in (("alone", False), ("beside a copy", True)):
        taken = []
        for _ in range(times):
            torch.cuda.synchronize()
            if copies:
                with torch.cuda.stream(other):
                    target.copy_(large.to(gpu, non_blocking=True))
            begin = time.perf_counter_ns()
            tokens = read(logits.argmax(1).int())
            taken.append((time.perf_counter_ns() - begin) / 1e3)
            assert len(tokens) == NUM_TOKENS
        found[name] = median(taken)
    return found


def as_bytes(tokens: Tensor, pinned: Tensor, event: Any) -> bytes:
    """By a pinned copy."""
    pinned.copy_(tokens, non_blocking=True)
    event.record()
    event.synchronize()
    return pickle.dumps(pinned.numpy(), 5)


def as_handle(tokens: Tensor, pinned: Tensor, event: Any) -> bytes:
    """By a CUDA IPC handle, as `torch.multiprocessing` sends tensors."""
    file = BytesIO()
    ForkingPickler(file, 5).dump(tokens)
    return file.getvalue()


def as_tensor(tokens: Tensor, pinned: Tensor, event: Any) -> bytes:
    """By pickling the tensor of the device as it is."""
    return pickle.dumps(tokens, 5)


WAYS = {"pinned copy": as_bytes, "CUDA IPC handle": as_handle, "pickled device tensor": as_tensor}


def receive(connection: Connection) -> None:
    """Make a list of each; answer its sum, at the end whether there is a CUDA context."""
    while message := connection.recv_bytes():
        connection.send(sum(pickle.loads(message).tolist()))
    connection.send(torch.cuda.is_initialized())


def way_times(way: Callable[..., bytes], times: int) -> dict[str, Any]:
    """µs from the tokens on the device to the other process's answer."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=receive, args=(there,), daemon=True)
    process.start()
    there.close()
    pinned = torch.empty(NUM_TOKENS, dtype=torch.int32, pin_memory=True)
    event, taken = torch.cuda.Event(), []
    free = torch.cuda.mem_get_info()[0]
    try:
        for _ in range(times + 5):
            tokens = torch.randint(
                50_000, (NUM_TOKENS,), dtype=torch.int32, device=torch.device("cuda")
            )
            expected = int(tokens.sum())
            begin = time.perf_counter_ns()
            here.send_bytes(way(tokens, pinned, event))
            answer = here.recv()
            taken.append((time.perf_counter_ns() - begin) / 1e3)
            assert answer == expected
        held = free - torch.cuda.mem_get_info()[0]
        here.send_bytes(b"")
        return {"us": median(taken[5:]), "has_context": here.recv(), "gpu_bytes_held": held}
    finally:
        process.kill()
        process.join()


def main() -> int:
    """All ways, one after the other; 1 where one failed, which is named and leaves the others."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("result", type=Path, nargs="?")
    parser.add_argument("--small", action="store_true", help="Shows that it runs.")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("torch finds no CUDA device here; run this on a machine with a GPU")
    times, beside = (SMALL_TIMES, SMALL_BESIDE_BYTES) if given.small else (TIMES, BESIDE_BYTES)
    result: dict[str, Any] = {"machine": describe(), "read": {}, "to_another_process": {}}
    asked: list[tuple[str, str, Callable[[], dict[str, Any]]]] = [
        ("read", name, lambda read=read: read_times(read, times, beside))
        for name, read in readers().items()
    ]
    asked += [
        ("to_another_process", name, lambda way=way: way_times(way, times))
        for name, way in WAYS.items()
    ]
    for question, name, measure in asked:
        try:
            found = measure()
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        result[question][name] = found
        if given.result:
            given.result.write_bytes(indented(result))
        print(f"{question}: {name}: {found}", flush=True)
    print(json.dumps(msgspec.to_builtins(result)))
    failed = [
        each
        for way in ("read", "to_another_process")
        for each in result[way].values()
        if "error" in each
    ]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
