"""``gcbench calibrate`` from the outside: what it writes, and that it is right."""

import json
import os
import re
from pathlib import Path
from statistics import median

import msgspec
import psutil
import pytest
from calibration_points import Corners, device
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.device.profile import DeviceProfile, FitError, load_profile
from harness.calibrate import measure
from harness.calibrate.known import RATES, model_name
from harness.calibrate.profile_file import profile_toml
from harness.calibrate.result import Calibration
from harness.cli.main import main

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
FEW = ["--batch-size", "1,2,4", "--context", "8,24", "--prefill", "4,16"]
SMALL = [*FEW, "--steps", "2", "--rounds", "1"]


@pytest.fixture
def gcbench(capsys):
    def call(*arguments: object) -> tuple[int, str, str]:
        status = main(list(map(str, arguments)))
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture
def known(tmp_path) -> DeviceProfile:
    """Steps of 0.3 to 7 ms, every branch of the roofline taken."""
    corners = Corners(bandwidth=1.25e12, tokens=20, launch=0.4, attention=0.6, ratio=0.05)
    profile = msgspec.structs.replace(device(corners), name="known", source="made up")
    (tmp_path / "known.toml").write_text(profile_toml(profile, []))
    return profile


@pytest.fixture
def tiny(tmp_path) -> Path:
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return path


# Waits of a modelled device are real ones, which end late on a busy machine.
@pytest.mark.flaky(reruns=2)
@pytest.mark.slow
def test_a_modelled_device_gives_its_own_figures_back(gcbench, known, tmp_path):
    assert load_profile(str(tmp_path / "known.toml")) == known
    path = tmp_path / "again.toml"
    status, out, _ = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        tmp_path / "known.toml",
        "--output",
        path,
    )
    assert status == 0
    again = load_profile(str(path))
    for name in RATES:
        assert getattr(again, name) == pytest.approx(getattr(known, name), rel=0.02), name
    assert again.fit_error.worst < 0.02
    assert (again.name, again.model) == ("again", "facebook/opt-125m")
    for name in (
        "weight_bytes",
        "kv_bytes_per_token",
        "flops_per_token",
        "memory_bytes",
        "attention_flops_per_token_pair",
    ):
        assert getattr(again, name) == getattr(known, name)
    assert "not measured" in again.source
    assert "modelled" in again.accelerator
    assert max(map(len, out.splitlines())) <= 100
    assert "nothing of any hardware" in " ".join(out.split())


@pytest.mark.slow
def test_a_real_model_is_calibrated_and_its_profile_taken(gcbench, tiny, tmp_path):
    path, json_path = tmp_path / "tiny-cpu.toml", tmp_path / "tiny.json"
    status, out, err = gcbench(
        "calibrate",
        "--device",
        "cpu",
        "--model",
        tiny,
        *SMALL,
        "--output",
        path,
        "--json",
        json_path,
    )
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
    assert "random weights" in profile.source
    assert "14 points of 2 steps" in profile.source
    assert profile.machine
    result = msgspec.json.decode(json_path.read_bytes(), type=Calibration)
    assert result.profile == profile
    assert len(result.points) == 14
    for point in result.points:
        load = point.num_tokens, point.context_tokens, point.token_pairs
        assert point.modelled_seconds == pytest.approx(profile.seconds(*load))
        assert point.error == pytest.approx(point.modelled_seconds / point.measured_seconds - 1)
    errors = [abs(point.error) for point in result.points]
    assert profile.fit_error == FitError(round(median(errors), 6), round(max(errors), 6))
    assert result.figures[0].best > 1e8, "a copy in memory"
    assert "not measured" not in out


@pytest.mark.slow
def test_a_trial_takes_a_calibrated_profile(gcbench, known, tmp_path):
    path = tmp_path / "again.toml"
    gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        tmp_path / "known.toml",
        *SMALL,
        "--output",
        path,
        "--quiet",
    )
    status, out, err = gcbench(
        "run",
        "--device",
        "modelled",
        "--device-profile",
        path,
        "--num-requests",
        4,
        "--output-lens",
        4,
        "--batch-size",
        4,
        "--mode",
        "counts",
        "--json",
        "-",
        "--output",
        tmp_path / "runs",
    )
    assert status == 0, err
    assert json.loads(out)["cell"]["device_profile"] == str(path)


def test_the_default_name_is_that_of_model_and_device(gcbench, known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = gcbench(
        "calibrate", "--device", "modelled", "--device-profile", "known.toml", *SMALL, "--quiet"
    )
    assert (status, out, err) == (0, "", "")
    assert load_profile("opt-125m-modelled.toml").name == "opt-125m-modelled"


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


def test_json_on_standard_output_is_all_there_is(gcbench, known, tmp_path):
    status, out, _ = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        tmp_path / "known.toml",
        *SMALL,
        "--output",
        tmp_path / "again.toml",
        "--json",
        "-",
        "--quiet",
    )
    assert status == 0
    result = msgspec.json.decode(out, type=Calibration)
    assert result.schema == "gcbench.calibration/1"
    assert result.profile == load_profile(str(tmp_path / "again.toml"))


def with_memory(known: DeviceProfile, num_tokens: int, path: Path) -> Path:
    memory = (known.weight_bytes + num_tokens * known.kv_bytes_per_token + 1) / 0.9
    smaller = msgspec.structs.replace(known, memory_bytes=memory)
    path.write_text(profile_toml(smaller, []))
    return path


@pytest.mark.slow
def test_points_that_do_not_fit_are_left_out_by_name(gcbench, known, tmp_path):
    small = with_memory(known, 1600, tmp_path / "small.toml")
    status, out, _ = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        small,
        "--batch-size",
        "1,4",
        "--context",
        "16,700",
        "--prefill",
        "16,128",
        "--output",
        tmp_path / "again.toml",
    )
    assert status == 0
    said = " ".join(out.split())
    assert "Left out - decode 4 × 700: it takes 176 KV blocks of 16 tokens" in said
    assert "memory holds 100" in said
    assert said.count("KV blocks") == 1


def test_too_little_memory_is_nothing_measured(gcbench, known, tmp_path):
    small = with_memory(known, 1600, tmp_path / "small.toml")
    status, out, err = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        small,
        "--batch-size",
        "4,8",
        "--context",
        "700",
        "--prefill",
        "16,128,512",
        "--output",
        tmp_path / "again.toml",
        "--quiet",
    )
    assert (status, out) == (3, "")
    assert "nothing measured: 3 of 11 points fit into the KV cache, 6 are needed" in err.replace(
        "\n", " "
    )
    assert not (tmp_path / "again.toml").exists()


def test_an_interrupted_calibration_leaves_everything_as_it_was(
    gcbench, known, tmp_path, monkeypatch
):
    taken = []

    def interrupted(*arguments):
        taken.append(arguments)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return sample(*arguments)

    sample = measure.sample
    monkeypatch.setattr(measure, "sample", interrupted)
    (tmp_path / "again.toml").write_text("before")
    before = sorted(tmp_path.iterdir())
    status, out, err = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        tmp_path / "known.toml",
        *SMALL,
        "--output",
        tmp_path / "again.toml",
        "--json",
        tmp_path / "again.json",
    )
    assert (status, out) == (130, "")
    assert "interrupted" in err
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "again.toml").read_text() == "before"


def test_a_profile_that_is_there_is_replaced_whole(gcbench, known, tmp_path):
    path, linked = tmp_path / "again.toml", tmp_path / "elsewhere.toml"
    linked.write_text("# older\n" * 1000)
    path.symlink_to(linked)
    status, _, _ = gcbench(
        "calibrate",
        "--device",
        "modelled",
        "--device-profile",
        tmp_path / "known.toml",
        *SMALL,
        "--output",
        path,
        "--quiet",
    )
    assert status == 0
    assert path.is_symlink()
    assert "older" not in linked.read_text()
    assert load_profile(str(linked)).name == "again"


MODELLED, CPU = ["--device", "modelled"], ["--device", "cpu"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["--device"]),
        (["--device", "cpuu"], ["'cpuu'", "cpu"]),
        (["--device", "null"], ["--device null", "nothing to calibrate", "modelled"]),
        ([*CPU, "--model", "opt-125"], ["'opt-125'", "opt-125m"]),
        ([*CPU, "--model", "absent/config.json"], ["absent/config.json"]),
        ([*CPU, "--dtype", "int8"], ["--dtype int8", "bfloat16"]),
        ([*CPU, "--context", "16,4000"], ["positions for 2048"]),
        ([*CPU, "--prefill", "16,4000"], ["4000", "positions for 2048"]),
        ([*CPU, "--device-profile", "opt-125m-h200"], ["--device-profile opt-125m-h200", "cpu"]),
        ([*MODELLED, "--device-profile", "opt-125m-h20"], ["opt-125m-h20", "opt-125m-h200"]),
        ([*MODELLED, "--batch-size", "8,0"], ["--batch-size 0", "at least 1"]),
        ([*MODELLED, "--context", "0"], ["--context 0", "at least 1"]),
        ([*MODELLED, "--prefill", "-4"], ["--prefill -4", "at least 1"]),
        ([*MODELLED, "--prefill", "many"], ["--prefill", "whole numbers"]),
        ([*MODELLED, "--steps", "0"], ["--steps 0", "at least 1"]),
        ([*MODELLED, "--rounds", "-1"], ["--rounds -1", "at least 1"]),
        ([*MODELLED, "--batch-size", "1", "--context", "9", "--prefill", "1"], ["3 points", "6"]),
        ([*MODELLED, "--output", "FOLDER"], ["FOLDER", ".toml"]),
        ([*MODELLED, "--output", "FOLDER/profile.json"], ["profile.json", ".toml"]),
        ([*MODELLED, "--output", "FOLDER/absent/p.toml"], ["absent/p.toml", "cannot be written"]),
        ([*MODELLED, "--output", "FOLDER/folder.toml"], ["folder.toml", "is no file"]),
        ([*MODELLED, "--output", "FOLDER/pipe.toml"], ["pipe.toml", "is no file"]),
        ([*MODELLED, "--json", "FOLDER"], ["--json FOLDER", "cannot be written"]),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_measured(gcbench, tmp_path, arguments, words):
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    before = sorted(tmp_path.iterdir())
    output = [] if "--output" in arguments else ["--output", tmp_path / "p.toml"]
    given = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    status, out, err = gcbench("calibrate", *given, *output)
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("gcbench: ")
    for word in words:
        assert word.replace("FOLDER", str(tmp_path)) in line
    assert sorted(tmp_path.iterdir()) == before


def test_cuda_is_refused_where_there_is_none(gcbench, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    status, _, err = gcbench("calibrate", "--device", "cuda", "--output", tmp_path / "p.toml")
    assert status == 2
    assert re.fullmatch(r"gcbench: --device cuda: torch finds no CUDA device here.*\n", err)


def test_help_has_examples_and_fits_the_page(gcbench):
    status, out, _ = gcbench("calibrate", "--help")
    assert status == 0
    assert re.search(r"Examples:\n\s+gcbench calibrate", out)
    assert max(map(len, out.splitlines())) <= 100


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
