"""What launching a step takes the host: on a clock that nobody else moves, and as published."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from harness_free import null_config
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.modelled_gains import RUNNER_SECONDS
from engines import deadline
from engines.builtin.device import DeviceBatch, modelled
from engines.builtin.device.modelled import ModelledDevice
from engines.builtin.device.profile import HostLaunch, load_profile

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "gpu"
US = 1_000

PROFILE = """
name = "launched"
model = "m"
accelerator = "a"
source = "made up"
weight_bytes = 0
kv_bytes_per_token = 0
flops_per_token = 0
attention_flops_per_token_pair = 0
memory_bytes = 1e4
bandwidth_bytes_per_second = 1
flops_per_second = 1
launch_overhead_seconds = 900e-6
[host]
replay_seconds = 100e-6
replay_seconds_per_row = 10e-6
eager_seconds = 300e-6
eager_seconds_per_token = 1e-6
tail_seconds = 200e-6
wake_up_seconds = 40e-6
gil_free_share = 0.25
"""


class Clock:
    """A reading takes half a microsecond; ``held_ns``: of what has passed, with the GIL."""

    def __init__(self) -> None:
        self.now = self.held_ns = 0

    def perf_counter_ns(self) -> int:
        self.now += 500
        self.held_ns += 500
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9)

    def poll(self, _timeout: float) -> None:
        self.now += 500


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (modelled, deadline):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(deadline, "LET_OTHERS_RUN", clock)
    return clock


@pytest.fixture
def device(clock: Clock, tmp_path: Path) -> ModelledDevice:
    path = tmp_path / "launched.toml"
    path.write_text(PROFILE)
    return ModelledDevice(null_config(device="modelled", device_profile=str(path)))


def batch(num_decoding: int, prompt: int = 0) -> DeviceBatch:
    """Rows that decode, and one with so many tokens of its prompt."""
    scheduled = np.array([1] * num_decoding + [prompt] * (prompt > 0), np.int32)
    position = np.array([3] * num_decoding + [0] * (prompt > 0), np.int64)
    return DeviceBatch(np.arange(len(position)), position, scheduled, position + 8, None, None)


@pytest.mark.parametrize(
    ("given_batch", "before"),
    [(batch(5), 150), (batch(0, 50), 350), (batch(5, 50), 500), (batch(0, 1), 301)],
)
def test_a_step_begins_when_the_host_has_launched_it(clock, device, given_batch, before):
    began = clock.now
    handle = device.launch(given_batch)
    assert clock.now - began == pytest.approx((before + 200) * US, abs=5 * US)
    blocked, late = handle.wait()
    assert clock.now - began == pytest.approx((before + 900 + 40) * US, abs=5 * US)
    assert blocked == pytest.approx((900 + 40 - 200) * US, abs=5 * US)
    assert late <= 2 * US
    assert handle.step_seconds == pytest.approx(900e-6)


def test_a_step_behind_another_begins_at_its_end(clock, device):
    began = clock.now
    device.launch(batch(5))
    second = device.launch(batch(5))
    second.wait()
    assert clock.now - began == pytest.approx((150 + 2 * 900 + 40) * US, abs=5 * US)


def test_others_may_run_in_a_share_of_the_launch(clock, device):
    device.launch(batch(5))
    # A reading and a poll take as long, so half of the share that is spun through is held.
    assert clock.held_ns == pytest.approx(350 * US * (0.75 + 0.25 / 2), abs=6 * US)


@given(
    st.integers(0, 2048),
    st.integers(0, 4096),
    st.floats(0, 1e-2),
    st.floats(0, 1e-2),
    st.floats(0, 1e-2),
)
def test_what_a_profile_adds_to_a_device_alone(rows, tokens, replay, tail, wake_up):
    alone = load_profile("opt-125m-h200")
    host = HostLaunch(
        replay_seconds=replay,
        replay_seconds_per_row=0.0,
        eager_seconds=0.0,
        eager_seconds_per_token=0.0,
        tail_seconds=tail,
        wake_up_seconds=wake_up,
        gil_free_share=0.0,
    )
    load = (rows + tokens, 9 * rows + tokens, 9 * rows + tokens**2)
    assert alone.latency_seconds(rows, *load) == alone.seconds(*load)
    found = msgspec.structs.replace(alone, host=host).latency_seconds(rows, *load)
    shown = found - (replay if rows else 0.0)
    assert shown == pytest.approx(max(alone.seconds(*load) + wake_up, tail))


def published(name: str) -> dict[str, dict[str, list[float]]]:
    """Of each cell that is processed inline, each metric's samples."""
    return {
        cell["id"]: {
            metric: [each for each in said["samples"] if each is not None]
            for metric, said in cell["metrics"].items()
        }
        for cell in json.loads((PUBLISHED / name).read_bytes())["cells"]
        if cell["axes"]["output_processing"] == "inline"
    }


def test_the_profile_is_that_of_the_published_trials():
    profile = load_profile("opt-125m-h200-measured")
    host = profile.host
    cells = [*published("gpu-verdict.json").values(), *published("gpu-grid.json").values()]
    launch, wait, device = (
        np.concatenate([cell[name] for cell in cells])
        for name in ("phase_launch", "phase_wait", "device_time_per_step")
    )
    assert len(launch) == 33
    slope, _ = np.polyfit(launch, wait, 1)
    _, behind = np.polyfit(launch, wait - device, 1)
    before = (1 + slope) * launch.mean() - RUNNER_SECONDS
    assert host.tail_seconds == pytest.approx(-slope * launch.mean(), rel=0.01)
    assert host.seconds_before(1024, 0) == pytest.approx(before, rel=0.01)
    assert host.wake_up_seconds == pytest.approx(behind, rel=0.02)


@pytest.mark.parametrize(
    ("name", "model"),
    [("opt-125m-h200-measured", "opt-125m"), ("llama-3-8b-h200-measured", "llama-3-8b")],
)
def test_attention_is_that_of_the_published_sweep(name, model):
    profile = load_profile(name)
    swept = json.loads((PUBLISHED / "gpu-tiles.json").read_bytes())["swept"]
    measured = {
        each["context"]: tile["seconds"]
        for each in swept
        if each["model"] == model
        for tile in each["tiles"]
        if tile["tile"] == {"num_keys": 64, "num_warps": 2, "num_stages": 3}
    }
    layers, constant = (12, 16.7e-6) if model == "opt-125m" else (32, 34.6e-6)
    for context, seconds in measured.items():
        *_, read, _ = profile.parts(1024, 1024 * context, 1024 * context)
        assert read / layers + constant == pytest.approx(seconds, rel=0.011)
