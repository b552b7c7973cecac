"""What does launching a step of a model on a GPU execute on the host? Exact, and without a GPU.

Over the tests' stand-in for torch.cuda, at batch 64 and 1,024, by what happens in the step:
bytecodes and tracked objects of this project's code and NumPy's, and the calls of torch that they
make. What torch does in them is its own.

    python -m benchmarks.launch_counts [TREE]

TREE: another checkout of gcbench, to compare with. The last line of output is one JSON document.
"""

import gc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from gcbench.function_costs import counted_calls
from gcbench.opcodes import OpcodeCounter
from harness.machine.describe import code_identity

if TYPE_CHECKING:
    from engines.builtin.worker import SchedulerOutput

TORCH = "torch/", "contextlib.py", "cuda_stand_in.py"
MODEL = {
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "ffn_dim": 48,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
"""One that fits into the stand-in's memory: what a launch executes does not depend on it."""
BATCHES = 64, 1024
WARM_UP, NUM_STEPS, JOINS_AT, LEAVES_AFTER = 3, 24, 15, 4


def event(scheduled: "SchedulerOutput", rows_before: list[int]) -> str:
    """What happens in a step."""
    rows = scheduled.rows.tolist()
    if scheduled.new.rows:
        return "one row joins"
    if rows != rows_before:
        return "one row leaves"
    return "all rows get a block" if len(scheduled.block_ids) else "no row changes"


def counts(num_reqs: int, model: str) -> dict[str, dict[str, int]]:
    """Of a launch, by what happens in its step: the first of its kind after a few steps."""
    from engines.builtin.engine import Engine
    from engines.builtin.worker import SchedulerOutput
    from engines.protocol import EngineConfig, SamplingParams

    engine = Engine(
        EngineConfig(
            max_num_seqs=num_reqs,
            max_model_len=64,
            model=model,
            device="cuda",
            representation="flat_arrays",
            delivery="columnar",
            max_num_batched_tokens=num_reqs * 8,
        )
    )
    prompt = np.zeros(8, np.int32)
    for index in range(num_reqs):
        engine.add_request(index, prompt, SamplingParams(40 if index else LEAVES_AFTER))
    found: dict[str, dict[str, int]] = {}
    launch, rows, num_launched = engine._worker.launch, list[int](), 0

    def counted(scheduled: SchedulerOutput) -> None:
        nonlocal rows, num_launched
        happens = event(scheduled, rows)
        rows, num_launched = scheduled.rows.tolist(), num_launched + 1
        if num_launched <= WARM_UP or happens in found:
            launch(scheduled)
            return
        counter = OpcodeCounter()
        with counter:
            launch(scheduled)
        found[happens] = without_torch(counter)

    engine._worker.launch = counted  # type: ignore[method-assign]
    gc.disable()
    with OpcodeCounter.instrumented():
        for step in range(NUM_STEPS):
            if step == JOINS_AT:
                engine.add_request(num_reqs, prompt, SamplingParams(20))
            engine.step()
    engine.shutdown()
    return found


def without_torch(counter: OpcodeCounter) -> dict[str, int]:
    """Its counts, but those of torch and what stands in for it, whose calls are counted."""
    functions, calls = counted_calls(counter.tree, {})
    within: list[bool] = []
    found = {"bytecodes": 0, "objects": 0, "torch calls": 0}
    for call in calls:
        is_within = call.parent >= 0 and within[call.parent]
        is_torch = functions[call.function].file.startswith(TORCH)
        within.append(is_within or is_torch)
        if is_torch and not is_within:
            found["torch calls"] += call.calls
        elif not is_within:
            found["bytecodes"] += call.bytecodes
            found["objects"] += call.allocations
    return found


def main() -> None:
    """Count in this tree or another."""
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    sys.path[:0] = [str(tree), str(tree / "tests" / "engines" / "model")]
    import cuda_stand_in

    found = {}
    for num_reqs in BATCHES:
        _, stack = cuda_stand_in.install()
        with stack, TemporaryDirectory() as folder:
            model = Path(folder) / "config.json"
            model.write_text(json.dumps(MODEL))
            found[num_reqs] = counts(num_reqs, str(model))
        for happens, each in found[num_reqs].items():
            print(f"batch {num_reqs:>5,}, {happens}:", *(f"{each[name]:,} {name}" for name in each))
    print(json.dumps({"code_commit": code_identity(tree)[1], "launches": found}))


if __name__ == "__main__":
    main()
