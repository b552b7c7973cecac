"""Devices that are not there: no wait at all, and waits of a modelled length."""

import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from harness_free import null_config
from hypothesis import given
from hypothesis import strategies as st

from engines import deadline
from engines.builtin.device import DeviceBatch, modelled, profile
from engines.builtin.device.modelled import ModelledDevice
from engines.builtin.device.null import NullDevice
from engines.builtin.device.profile import FitError, load_profile, shipped_profiles

MS = 1_000_000

TWO_MS = """
name = "two-ms"
model = "m"
accelerator = "a"
source = "made up"
weight_bytes = 1500
kv_bytes_per_token = 0.5
flops_per_token = 0
attention_flops_per_token_pair = 0
memory_bytes = 1e4
bandwidth_bytes_per_second = 1e6
flops_per_second = 1
launch_overhead_seconds = 500e-6
"""


def batch(*context: int, num_scheduled: int = 1) -> DeviceBatch:
    count = len(context)
    return DeviceBatch(
        np.arange(count),
        np.zeros(count, np.int64),
        np.full(count, num_scheduled, np.int32),
        np.array(context, np.int64),
        None,
        None,
    )


class FakeTime:
    """A clock that moves only when somebody sleeps or polls; sleeps end late by a set time."""

    def __init__(self) -> None:
        self.now, self.oversleep = 7 * MS, 0

    def perf_counter_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1e9) + self.oversleep

    def poll(self, _timeout: float) -> None:
        self.now += 1_000


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(modelled, "time", fake)
    monkeypatch.setattr(deadline, "time", fake)
    monkeypatch.setattr(deadline, "LET_OTHERS_RUN", fake)
    return fake


@pytest.fixture
def device(fake_time: FakeTime, tmp_path: Path) -> ModelledDevice:
    """Steps of 2 ms and half a microsecond a token in the cache, of which there is none here."""
    path = tmp_path / "two-ms.toml"
    path.write_text(TWO_MS)
    return ModelledDevice(null_config(device="modelled", device_profile=str(path)))


def test_null_never_waits():
    handle = NullDevice(null_config()).launch(batch(1, 2))
    assert handle.wait() == (0, 0)
    assert handle.step_seconds == 0
    assert handle.tokens.shape == (2, 1)


def test_null_has_room_for_every_row_at_its_longest():
    config = null_config(num_accepted=(4,), block_size=16)
    needed = -(-(config.max_model_len + 2 * 4) // 16) * config.max_num_seqs
    assert NullDevice.num_kv_tokens(config) // 16 >= needed


def test_a_step_begins_at_its_launch_or_after_the_one_before(device, fake_time):
    start = fake_time.now
    first = device.launch(batch(0))
    fake_time.now += MS // 2
    second = device.launch(batch(0, 0))
    assert first.step_seconds == second.step_seconds == pytest.approx(2e-3)
    assert first.wait() == (3 * MS // 2, 0)
    assert second.wait() == (2 * MS, 0)
    assert fake_time.now == start + 4 * MS
    fake_time.now += 5 * MS
    third = device.launch(batch(0))
    assert third.wait() == (2 * MS, 0), "an idle device has nothing to catch up on"


def test_deadlines_are_absolute_and_lateness_is_counted(device, fake_time):
    start, fake_time.oversleep = fake_time.now, MS
    first, second = device.launch(batch(0)), device.launch(batch(0))
    blocked, late = first.wait()
    assert blocked == fake_time.now - start == 2 * MS + late
    assert late == MS - 150_000, "slept to 0.15 ms before the end, and 1 ms too long"
    fake_time.oversleep = 0
    assert second.wait() == (2 * MS - late, 0)
    assert fake_time.now == start + 4 * MS


def test_a_host_that_comes_late_neither_waits_nor_counts_as_the_devices_lateness(device, fake_time):
    handle = device.launch(batch(0))
    fake_time.now += 3 * MS
    assert handle.wait() == (0, 0)


def test_context_makes_a_step_longer(device):
    assert device.launch(batch(400, 600)).step_seconds == pytest.approx(2.5e-3)


def test_others_run_during_the_wait():
    counted, started, stop = [0], threading.Event(), threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            started.set()

    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    during = 0
    for _ in range(500):  # of a busy machine it may get no core for as long as one wait lasts
        before = counted[0]
        moment = time.perf_counter_ns() + 20 * MS
        assert deadline.wait_until(moment) >= moment
        if during := counted[0] - before:
            break
    stop.set()
    thread.join()
    assert during > 0


@pytest.mark.parametrize(
    ("name", "parameters", "kv_bytes", "flops_per_pair"),
    [
        ("opt-125m", 125_239_296, 2 * 12 * 12 * 64 * 2, 4 * 12 * 12 * 64),
        ("llama-3-8b", 8_030_261_248, 2 * 32 * 8 * 128 * 2, 4 * 32 * 32 * 128),
        ("qwen3-0.6b", 596_049_920, 2 * 28 * 8 * 128 * 2, 4 * 28 * 16 * 128),
    ],
)
def test_shipped_models_follow_from_their_shapes(name, parameters, kv_bytes, flops_per_pair):
    assert kv_bytes in (36_864, 131_072, 114_688)
    for accelerator, memory in (("h100", 80e9), ("h200", 141e9)):
        read = load_profile(f"{name}-{accelerator}")
        assert read.name == f"{name}-{accelerator}"
        assert read.weight_bytes == read.flops_per_token == 2 * parameters
        assert read.kv_bytes_per_token == kv_bytes
        assert read.attention_flops_per_token_pair == flops_per_pair
        assert read.memory_bytes == memory
        assert "computed from published figures" in read.source


@pytest.mark.parametrize(
    ("name", "step", "milliseconds"),
    [
        # 1,024 x 250,478,592 / 989e12 = 0.25934; 1,024 x 298 x 36,864 / 4.8e12 = 2.34357; 0.05
        ("opt-125m-h200", batch(*[298] * 1024), 2.65291),
        # 250,478,592 / 4.8e12 = 0.05218; 298 x 36,864 / 4.8e12 = 0.00229; 0.05
        ("opt-125m-h200", batch(298), 0.10447),
        # 16,060,522,496 x 1,024 / 989e12 = 16.62889; 1,024 x 298 x 131,072 / 3.35e12 = 11.93936
        ("llama-3-8b-h100", batch(*[298] * 1024), 28.61826),
        # 16,060,522,496 x 2,048 / 989e12 = 33.25779; 2,048 x 2,048 x 524,288 / 989e12 = 2.22348
        ("llama-3-8b-h200", batch(2048, num_scheduled=2048), 35.53127),
    ],
)
def test_step_times_by_hand(name, step, milliseconds):
    assert load_profile(name).step_seconds(step) * 1e3 == pytest.approx(milliseconds, abs=2e-5)


def test_attention_may_have_rates_of_its_own():
    # 0.05218 + 0.05 and: 298 x 36,864 / 1e9 = 10.98547, or 298 x 36,864 / 1e8 = 109.85472
    profile = load_profile("opt-125m-h200")
    step = batch(298)
    reading = msgspec.structs.replace(profile, attention_bandwidth_bytes_per_second=1e9)
    assert reading.step_seconds(step) * 1e3 == pytest.approx(0.10218 + 10.98547, abs=2e-5)
    both = msgspec.structs.replace(reading, attention_flops_per_second=1e8)
    assert both.step_seconds(step) * 1e3 == pytest.approx(0.10218 + 109.85472, abs=2e-5)
    same = msgspec.structs.replace(
        profile,
        attention_bandwidth_bytes_per_second=profile.bandwidth_bytes_per_second,
        attention_flops_per_second=profile.flops_per_second,
    )
    assert same.step_seconds(step) == profile.step_seconds(step)


@given(
    st.lists(st.tuples(st.integers(1, 600), st.integers(0, 2000)), min_size=1, max_size=20),
    st.sampled_from(shipped_profiles()),
)
def test_a_step_by_its_sums(requests, name):
    num_scheduled = np.array([tokens for tokens, _ in requests], np.int32)
    context = num_scheduled + np.array([before for _, before in requests], np.int64)
    step = batch(*context.tolist())._replace(num_scheduled=num_scheduled)
    pairs = sum(tokens * (tokens + before) for tokens, before in requests)
    sums = int(num_scheduled.sum()), int(context.sum()), pairs
    profile = load_profile(name)
    assert profile.step_seconds(step) == profile.seconds(*sums)
    weights, linear, kv, attention = profile.parts(*sums)
    launch = profile.launch_overhead_seconds
    assert profile.seconds(*sums) == max(weights, linear) + max(kv, attention) + launch


def test_a_profile_may_say_where_it_was_calibrated_and_how_well(tmp_path):
    shipped = load_profile("opt-125m-h200")
    assert (shipped.machine, shipped.fit_error) == ("", None)
    path = tmp_path / "here.toml"
    path.write_text(TWO_MS + 'machine = "a b"\nfit_error = { median = 0.02, worst = 1 }\n')
    read = load_profile(str(path))
    assert (read.machine, read.fit_error) == ("a b", FitError(0.02, 1.0))
    path.write_text(TWO_MS + "fit_error = { median = 0.02 }\n")
    with pytest.raises(ValueError, match=r"here.toml: .*`worst`"):
        load_profile(str(path))


def test_tokens_read_the_experts_that_they_choose():
    profile = load_profile("deepseek-v3-8xh200")
    fixed, routed, bandwidth = 17_117_648_384, 653_908_770_816, 3.84e13
    for tokens, touched in ((1, 8 / 256), (2, 1 - (248 / 256) ** 2), (4096, 1.0)):
        weights, *_ = profile.parts(tokens, 0, 0)
        assert weights == pytest.approx((fixed + touched * routed) / bandwidth, rel=1e-9)
    # Experts leave no room for keys and values: (0.9 x 1,128e9 - 671,026,419,200) / 70,272
    assert profile.num_kv_tokens() == 4_897_734


def test_no_expert_is_read_twice():
    # Each of many tokens chooses 8 of 128 at random; a share of 1 - (1 - 1/16)^n is read.
    rng = np.random.default_rng(0)
    seen = [
        len({expert for _ in range(12) for expert in rng.permutation(128)[:8].tolist()})
        for _ in range(400)
    ]
    profile = load_profile("qwen3-235b-fp8-4xh100")
    weights = profile.parts(12, 0, 0)[0] * profile.bandwidth_bytes_per_second
    read = (weights - profile.weight_bytes) / profile.routed_weight_bytes
    assert np.mean(seen) / 128 == pytest.approx(read, rel=0.01)


def test_cache_room_by_hand():
    # (0.9 x 141e9 - 250,478,592) / 36,864
    assert load_profile("opt-125m-h200").num_kv_tokens() == 3_435_588
    config = null_config(device="modelled", device_profile="opt-125m-h200")
    assert ModelledDevice.num_kv_tokens(config) == 3_435_588


def test_a_calibrated_profile_comes_before_the_computed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "SHIPPED_PROFILES", tmp_path)
    (tmp_path / "m-3.1-h200.toml").write_text(TWO_MS)
    assert load_profile("m-3.1-h200").source == "made up"
    (tmp_path / "m-3.1-h200.calibrated.toml").write_text(TWO_MS.replace("made up", "measured"))
    assert load_profile("m-3.1-h200").source == "measured"
    assert load_profile(str(tmp_path / "m-3.1-h200.toml")).source == "made up"
    assert shipped_profiles() == ["m-3.1-h200"]


def test_an_unknown_profile_names_the_nearest():
    with pytest.raises(ValueError, match=r"unknown device profile .*; did you mean opt-125m-h"):
        load_profile("opt-125-h200")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TWO_MS.replace('model = "m"\n', ""), "missing required field `model`"),
        (TWO_MS + "colour = 1\n", "unknown field `colour`"),
        (TWO_MS.replace("1500", '"much"'), "weight_bytes"),
        ("name = \n", "Invalid value"),
        (b"\xff\xfe", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_profile(tmp_path, text, what):
    path = tmp_path / "bad.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=f"device profile .*bad.toml: .*{what}") as caught:
        load_profile(str(path))
    assert "\n" not in str(caught.value)
