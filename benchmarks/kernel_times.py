"""Where does the time of a decode step go? µs by kernel, and the bytes it cannot do without.

    python benchmarks/kernel_times.py RESULT.json [MODEL ...]

A batch of 1,024 requests decodes at contexts 48 and 298, and torch's profiler adds up what the
kernels of eight steps take. Bytes are counted for weights, keys and values, and logits; what they
would take at the rate of a copy within the GPU's memory is the least that the step can take.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engines.builtin.engine import Engine  # noqa: E402
from engines.builtin.model.ceilings import copy_bytes_per_second  # noqa: E402
from engines.builtin.model.config import load_model  # noqa: E402
from engines.protocol import EngineConfig, SamplingParams  # noqa: E402
from harness.files import indented  # noqa: E402
from harness.machine.describe import describe  # noqa: E402

PROMPT_LEN, CONTEXTS, NUM_STEPS, NUM_REQS, COPY_BYTES = 48, (49, 298), 8, 1024, 1 << 30


def least_bytes(model: str, num_reqs: int, context: int) -> dict[str, float]:
    """Of a step, at two bytes an element."""
    config = load_model(model).config
    return {
        "weights": config.flops_per_token,
        "keys and values": num_reqs * context * config.kv_bytes_per_token(2),
        "logits": 2.0 * 2 * num_reqs * config.vocab_size,
    }


def kernel_times(model: str, num_reqs: int, contexts: tuple[int, ...]) -> dict[int, dict[str, Any]]:
    """By context: µs and launches per step of each kernel, the dearest first."""
    longest = max(contexts) + 2 * NUM_STEPS
    engine = Engine(
        EngineConfig(
            max_num_seqs=num_reqs,
            max_model_len=longest,
            model=model,
            device="cuda",
            representation="flat_arrays",
            delivery="columnar",
            max_num_batched_tokens=num_reqs * PROMPT_LEN,
        )
    )
    found: dict[int, dict[str, Any]] = {}
    try:
        prompt = np.arange(PROMPT_LEN, dtype=np.int32)
        for index in range(num_reqs):
            engine.add_request(index, prompt, SamplingParams(longest - PROMPT_LEN))
        engine.step()
        context = PROMPT_LEN
        for wanted in contexts:
            while context < wanted:
                engine.step()
                context += 1
            torch.cuda.synchronize()
            with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
                for _ in range(NUM_STEPS):
                    engine.step()
                torch.cuda.synchronize()
            context += NUM_STEPS
            kernels = {
                event.key: {
                    "us": event.self_device_time_total / NUM_STEPS,
                    "launches": event.count / NUM_STEPS,
                }
                for event in profiled.key_averages()
                if event.self_device_time_total
            }
            dearest = sorted(kernels.items(), key=lambda each: -each[1]["us"])
            found[wanted] = {
                "kernels": dict(dearest),
                "bytes": least_bytes(model, num_reqs, wanted),
            }
    finally:
        engine.shutdown()
    return found


def main() -> None:
    """Each model; written after each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("result", type=Path)
    parser.add_argument("models", nargs="*", default=["opt-125m", "llama-3-8b"])
    parser.add_argument("--small", action="store_true", help="Shows that it runs.")
    given = parser.parse_args()
    num_reqs, contexts, models, copied = NUM_REQS, CONTEXTS, given.models, COPY_BYTES
    if given.small:
        num_reqs, contexts, models, copied = 4, (49, 58), ["opt-tiny"], 1 << 16
    copy = copy_bytes_per_second(torch.device("cuda"), copied, seconds=1.0)
    result: dict[str, Any] = {
        "machine": describe(),
        "num_reqs": num_reqs,
        "copy_bytes_per_second": copy,
        "models": {},
    }
    for model in models:
        result["models"][model] = kernel_times(model, num_reqs, contexts)
        given.result.write_bytes(indented(result))
        for context, found in result["models"][model].items():
            took = sum(kernel["us"] for kernel in found["kernels"].values())
            least = sum(found["bytes"].values()) / copy * 1e6
            print(
                f"{model}, context {context}: {took:.0f} µs a step in kernels, {least:.0f} at least"
            )
            for name, kernel in list(found["kernels"].items())[:15]:
                print(
                    f"  {kernel['us']:9.1f} µs  {kernel['launches']:5.1f}x  {name[:60]}", flush=True
                )


if __name__ == "__main__":
    main()
