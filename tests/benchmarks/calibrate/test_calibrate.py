"""``python -m benchmarks.calibrate`` from the outside: what it writes, and that it is right."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median

import msgspec
import psutil
import pytest
from calibration_points import POINTS, UNIT, Corners, device
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.calibrate import measure
from benchmarks.calibrate.__main__ import main
from benchmarks.calibrate.fit import fit
from benchmarks.calibrate.known import RATES, model_name
from benchmarks.calibrate.point import Point
from benchmarks.calibrate.points import grid, sized_config
from benchmarks.calibrate.profile_file import profile_toml
from benchmarks.calibrate.result import Calibration
from engines.builtin.device.profile import DeviceProfile, FitError, load_profile
from harness.cli import main as gcbench

TINY = {
    "architectures": ["OPTForCausalLM"],
    "vocab_size": 99,
    "hidden_size": 32,
    "ffn_dim": 48,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
FEW = ["--batch-size", "1,2,4", "--context", "8,24", "--prefill", "4,16", "--rounds", "2"]
CPU = ["--device", "cpu"]


@pytest.fixture
def calibrate(capsys):
    """Run a command line: status, what it printed, what it said."""

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture
def known() -> DeviceProfile:
    """Steps of 0.3 to 7 ms, every branch of the roofline taken."""
    corners = Corners(bandwidth=1.25e12, tokens=20, launch=0.4, attention=0.6, ratio=0.05)
    return msgspec.structs.replace(device(corners), name="known", source="made up")


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return path


def measured(profile: DeviceProfile, path: Path, points: Sequence[Point]) -> measure.StepSamples:
    """Steps of a device whose figures are known."""
    path.write_text(profile_toml(profile, []))
    config = sized_config(points, 3, device="cpu", model="opt-125m")
    modelled = replace(config, device="modelled", device_profile=str(path))
    return measure.measure(modelled, points, 3, 3, lambda point: None)


# Waits of a modelled device are real ones, which end late on a busy machine.
@pytest.mark.flaky(reruns=2)
@pytest.mark.slow
def test_a_device_whose_figures_are_known_is_found_again(known, tmp_path):
    samples = measured(known, tmp_path / "known.toml", POINTS).samples
    loads = [sample.point.load for sample in samples]
    found = fit(UNIT, loads, [sample.seconds for sample in samples], {}).profile
    for name in RATES:
        assert getattr(found, name) == pytest.approx(getattr(known, name), rel=0.02), name
    for load in loads:
        assert found.seconds(*load) == pytest.approx(known.seconds(*load), rel=0.02)


@pytest.mark.slow
def test_a_real_model_is_calibrated_and_its_profile_taken(calibrate, tiny, tmp_path):
    path, json_path = tmp_path / "tiny-cpu.toml", tmp_path / "tiny.json"
    status, out, err = calibrate(*CPU, "--model", tiny, *FEW, "--output", path, "--json", json_path)
    assert status == 0, err
    profile = load_profile(str(path))
    layer = 4 * 32 * 32 + 2 * 32 * 48
    embeddings = (99 + 64 + 2) * 32
    biases_and_norms = 2 * (4 * 32 + 48 + 32 + 4 * 32) + 2 * 32
    assert profile.weight_bytes == 4 * (2 * layer + embeddings + biases_and_norms)
    assert profile.kv_bytes_per_token == 2 * 2 * 32 * 4
    assert profile.flops_per_token == 2 * (2 * layer + 99 * 32)
    assert profile.attention_flops_per_token_pair == 4 * 2 * 32
    assert profile.memory_bytes == psutil.virtual_memory().total
    assert (profile.name, profile.model) == ("tiny-cpu", "tiny")
    assert "calibrated on --device cpu with random weights, dtype auto" in profile.source
    assert date.today().isoformat() in profile.source
    assert "14 points of 6 steps" in profile.source
    assert profile.machine
    result = msgspec.json.decode(json_path.read_bytes(), type=Calibration)
    assert result.profile == profile
    assert result.command.startswith("python -m benchmarks.calibrate --device cpu --model ")
    assert len(result.points) == 14
    for point in result.points:
        load = point.num_tokens, point.context_tokens, point.token_pairs
        assert point.modelled_seconds == pytest.approx(profile.seconds(*load))
        assert point.error == pytest.approx(point.modelled_seconds / point.measured_seconds - 1)
    errors = [abs(point.error) for point in result.points]
    assert profile.fit_error == FitError(round(median(errors), 6), round(max(errors), 6))
    assert result.figures[0].best > 1e8, "a copy in memory"
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.slow
def test_a_trial_takes_a_written_profile(known, capsys, tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(profile_toml(known, []))
    words = ["run", "--device", "modelled", "--axis", f"device-profile={path}", "--mode", "counts"]
    small = ["--num-requests", "4", "--output-lens", "4", "--batch-size", "4"]
    to = ["--json", "-", "--output", tmp_path / "runs"]
    assert gcbench.main(list(map(str, [*words, *small, *to]))) == 0
    assert json.loads(capsys.readouterr().out)["trial"]["cell"]["device_profile"] == str(path)


@pytest.mark.slow
def test_the_default_name_is_that_of_model_and_device(calibrate, tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert calibrate(*CPU, "--model", "tiny/config.json", *FEW)[0] == 0
    assert load_profile("tiny-cpu.toml").name == "tiny-cpu"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("opt-125m", "opt-125m"),
        ("models/Llama-3-8B/", "Llama-3-8B"),
        ("a/mine.json", "mine"),
        ("~/m/opt/config.json", "opt"),
        ("llama-3.2-1b", "llama-3.2-1b"),
    ],
)
def test_a_model_is_named_without_the_way_to_it(path, name):
    assert model_name(path) == name


def with_memory(known: DeviceProfile, num_tokens: int) -> DeviceProfile:
    memory = (known.weight_bytes + num_tokens * known.kv_bytes_per_token + 1) / 0.9
    return msgspec.structs.replace(known, memory_bytes=memory)


@pytest.mark.slow
def test_points_that_do_not_fit_are_left_out_by_name(known, tmp_path):
    points = grid([1, 4], [16, 700], [16, 128])
    found = measured(with_memory(known, 1600), tmp_path / "small.toml", points)
    (sentence,) = found.left_out
    assert sentence.startswith("decode 4 × 700: it takes 176 KV blocks of 16 tokens")
    assert sentence.endswith("memory holds 100")
    assert len(found.samples) == len(points) - 1


def test_too_little_memory_is_nothing_measured(known, tmp_path):
    points = grid([4, 8], [700], [16, 128, 512])
    with pytest.raises(ValueError, match="3 of 11 points fit into the KV cache, 6 are needed"):
        measured(with_memory(known, 1600), tmp_path / "small.toml", points)


@pytest.mark.slow
def test_an_interrupted_calibration_leaves_everything_as_it_was(
    calibrate, tiny, tmp_path, monkeypatch
):
    taken = []

    def interrupted(*arguments):
        taken.append(arguments)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return sample(*arguments)

    sample = measure.sample
    monkeypatch.setattr(measure, "sample", interrupted)
    path = tmp_path / "again.toml"
    path.write_text("before")
    before = sorted(tmp_path.iterdir())
    status, out, err = calibrate(
        *CPU, "--model", tiny, *FEW, "--output", path, "--json", tmp_path / "again.json"
    )
    assert (status, out) == (130, "")
    assert "interrupted" in err
    assert sorted(tmp_path.iterdir()) == before
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--device"]),
        (["--device", "null"], ["--device", "'null'", "cpu", "cuda"]),
        ([*CPU, "--model", "opt-125"], ["'opt-125'", "opt-125m"]),
        ([*CPU, "--model", "absent/config.json"], ["absent/config.json"]),
        ([*CPU, "--context", "16,4000"], ["positions for 2048"]),
        ([*CPU, "--prefill", "16,4000"], ["4000", "positions for 2048"]),
        ([*CPU, "--batch-size", "8,0"], ["--batch-size 0", "at least 1"]),
        ([*CPU, "--context", "0"], ["--context 0", "at least 1"]),
        ([*CPU, "--prefill=-4"], ["--prefill -4", "at least 1"]),
        ([*CPU, "--prefill", "many"], ["--prefill", "whole_numbers"]),
        ([*CPU, "--rounds", "-1"], ["--rounds -1", "at least 1"]),
        ([*CPU, "--batch-size", "1", "--context", "9", "--prefill", "1"], ["3 points", "6"]),
        ([*CPU, "--output", "FOLDER"], ["FOLDER", ".toml"]),
        ([*CPU, "--output", "FOLDER/profile.json"], ["profile.json", ".toml"]),
        ([*CPU, "--output", "FOLDER/absent/p.toml"], ["absent/p.toml", "cannot be written"]),
        ([*CPU, "--output", "FOLDER/folder.toml"], ["folder.toml", "cannot be written"]),
        ([*CPU, "--json", "FOLDER"], ["--json FOLDER", "cannot be written"]),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_measured(calibrate, tmp_path, arguments, words):
    (tmp_path / "folder.toml").mkdir()
    before = sorted(tmp_path.iterdir())
    output = [] if "--output" in arguments else ["--output", tmp_path / "p.toml"]
    given = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    status, out, err = calibrate(*given, *output)
    assert (status, out) == (2, "")
    line = err.splitlines()[-1]
    assert line.startswith("python -m benchmarks.calibrate: error: ")
    for word in words:
        assert word.replace("FOLDER", str(tmp_path)) in line
    assert sorted(tmp_path.iterdir()) == before


def test_cuda_is_refused_where_there_is_none(calibrate, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    status, _, err = calibrate("--device", "cuda", "--output", tmp_path / "p.toml")
    assert status == 2
    assert re.search(r"error: --device cuda: torch finds no CUDA device here.*\n$", err)


floats = st.floats(1e-9, 1e18)


@given(
    st.builds(
        DeviceProfile,
        **dict.fromkeys(("name", "model", "accelerator", "source", "machine"), st.text()),
        **dict.fromkeys(DeviceProfile.__struct_fields__[4:12], floats),
        **{field: st.none() | floats for field in RATES[3:]},
        fit_error=st.none() | st.builds(FitError, floats, floats),
    )
)
def test_a_profile_is_read_as_it_was_written(tmp_path_factory, profile):
    path = tmp_path_factory.mktemp("profile") / "p.toml"
    path.write_bytes(profile_toml(profile, []).encode())
    assert load_profile(str(path)) == profile
