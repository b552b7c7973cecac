"""What can encode a request that vLLM 0.5.1 sends its workers, and how fast is Ray beside pickle?

vLLM #6903 says that msgpack needs other classes than vLLM had, #7109 that pickle is at least twice
as fast as Ray's own serialization. The release's own classes answer, out of its wheel, which is
downloaded (150 MB): a decode step of 64 requests. Ray serializes as for an object that it stores.

    python -m benchmarks.execute_model_request 0.5.1

CPU µs per request that is encoded, by round; the last line of output is one JSON document.
"""

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.sampling_params import extract
from harness.experiment.ray.connection import connected
from harness.experiment.ray.of_our_own import LOCAL
from harness.machine.describe import code_identity, describe

_ROOT = Path(__file__).parents[1]
_MODULES = ["sequence", "sampling_params", "pooling_params", "lora/request"]
NUM_REQUESTS, ROUNDS, TIMES = 64, 200, 5


def make_request() -> Any:
    """A decode step, as vLLM's scheduler made it."""
    sequence: Any = sys.modules["vllm.sequence"]
    params: Any = sys.modules["vllm.sampling_params"]
    group = [
        sequence.SequenceGroupMetadata(
            request_id=str(number),
            is_prompt=False,
            seq_data={number: sequence.SequenceData([1] * 48, [2] * 16)},
            sampling_params=params.SamplingParams(),
            block_tables={number: [4 * number, 4 * number + 1, 4 * number + 2, 4 * number + 3]},
        )
        for number in range(NUM_REQUESTS)
    ]
    return sequence.ExecuteModelRequest(seq_group_metadata_list=group)


def refusal(encode: Callable[[Any], bytes], request: Any) -> str:
    """Why it is not encoded; "" if it is."""
    try:
        encode(request)
    except TypeError as error:
        return str(error)
    return ""


def us(encode: Callable[[Any], bytes], request: Any) -> float:
    """CPU time of one, the mean of several: what other programs take does not count."""
    begin = time.thread_time_ns()
    for _ in range(TIMES):
        encode(request)
    return (time.thread_time_ns() - begin) / TIMES / 1e3


def by_ray(request: Any) -> bytes:
    """As Ray does it, which needs a Ray that this process has joined."""
    from ray._private.worker import global_worker  # only now: Ray reads its environment once

    stored: bytes = global_worker.get_serialization_context().serialize(request).to_bytes()
    return stored


def by_pickle(request: Any) -> bytes:
    """As vLLM's executors without Ray did."""
    return pickle.dumps(request, 5)


def main() -> None:
    """Ask the release that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", metavar="RELEASE")
    release = parser.parse_args().release
    with tempfile.TemporaryDirectory() as folder:
        extract(release, [f"vllm/{name}.py" for name in _MODULES], Path(folder))
        sys.path.insert(0, folder)
        import vllm.sequence  # noqa: F401  (make_request looks it up)

        request = make_request()
        refused = refusal(msgspec.msgpack.encode, request)
        with connected(LOCAL):
            for encode in (by_pickle, by_ray):
                us(encode, request)
            rounds = [(us(by_pickle, request), us(by_ray, request)) for _ in range(ROUNDS)]
    found = {
        "msgpack encodes": 0 if refused else 1,
        "refused": refused,
        "pickle bytes": len(by_pickle(request)),
        "pickle µs": [each[0] for each in rounds],
        "Ray µs": [each[1] for each in rounds],
    }
    commit = code_identity(_ROOT)[1]
    print(
        json.dumps(
            {"code_commit": commit, "machine": msgspec.to_builtins(describe()), release: found}
        )
    )


if __name__ == "__main__":
    main()
