"""``/metrics``: what Prometheus reads is what happened."""

import asyncio
import gc
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from harness_free import null_config
from prometheus_client.parser import text_string_to_metric_families
from rpc_calls import collections

from engines.server.app import App
from engines.server.engine_client import EngineClient
from engines.server.settings import ServerSettings
from harness.collector.serving import totals

LABELS = {"model_name": "small", "engine": "0"}


@pytest.fixture(autouse=True)
def calls_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=":")


def read(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Values by name and labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), "a series twice"
            found[sample.name][labels] = sample.value
    return found


def of_process(values: dict[tuple[tuple[str, str], ...], float], role: str) -> list[float]:
    each = [dict(labels) | {"value": value} for labels, value in values.items()]
    mine = [one for one in each if one["process"] == role]
    return [one["value"] for one in sorted(mine, key=lambda one: one["generation"])]


async def use(http: TestClient, client: EngineClient, workers: list[str]) -> None:
    for i in range(6):
        body = {"prompt": [1] * (i + 1), "max_tokens": 10, "ignore_eos": True, "stream": i % 2 == 0}
        async with http.post("/v1/completions", json=body) as response:
            async with http.get("/metrics") as meanwhile:
                assert meanwhile.status == 200
            await response.read()
    stopped = {"prompt": [1], "max_tokens": 50, "stop_token_ids": list(range(0, 60)), "n": 1}
    async with http.post("/v1/completions", json=stopped) as response:
        num_stopped = (await response.json())["usage"]["completion_tokens"]
    await client.idle()
    gc.disable()  # so that both who count see the same
    try:
        core_before = await client.call_core(collections)
        async with http.get("/metrics") as response:
            assert response.content_type == "text/plain"
            found = read(await response.text())
        assert of_process(found["gcbench:gc_collections_total"], "frontend") == collections(client)
    finally:
        gc.enable()
    core = of_process(found["gcbench:gc_collections_total"], "engine")
    core_after = await client.call_core(collections)
    assert all(a <= b <= c for a, b, c in zip(core_before, core, core_after, strict=True))
    processes = {dict(labels)["process"] for labels in found["gcbench:gc_collections_total"]}
    assert processes == {"frontend", "engine", *workers}
    assert len(of_process(found["gcbench:gc_pause_seconds_total"], "engine")) == 3
    key = tuple(sorted(LABELS.items()))
    assert found["vllm:num_requests_running"][key] == found["vllm:num_requests_waiting"][key] == 0
    assert found["vllm:prompt_tokens_total"][key] == 21 + 1
    assert found["vllm:generation_tokens_total"][key] == 60 + num_stopped
    by_reason = {
        dict(k)["finished_reason"]: v for k, v in found["vllm:request_success_total"].items()
    }
    assert by_reason == {"length": 6, "stop": 1}
    for name in ("time_to_first_token", "e2e_request_latency", "request_time_per_output_token"):
        total = found[f"vllm:{name}_seconds_count"][key]
        assert total == (6 if "per_output" in name and num_stopped == 1 else 7)
        assert found[f"vllm:{name}_seconds_sum"][key] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("worker", "workers"), [("in-process", []), ("process", ["worker-0"])])
@pytest.mark.landing
def test_what_is_counted_is_what_happened(worker, workers):
    async def main() -> None:
        config = null_config(
            vocab_size=60, output_processing="process", eos_token_id=-1, worker=worker
        )
        settings = ServerSettings("small")
        client = EngineClient(config)
        try:
            await client.start()
            app = App(settings, config, client, totals)
            async with TestClient(TestServer(app.application())) as http:
                await use(http, client, workers)
        finally:
            await client.stop()

    asyncio.run(main())
