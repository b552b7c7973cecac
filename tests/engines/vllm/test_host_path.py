"""What the vLLM engines answer before there is a vLLM: cells, reasons, what is exact."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import product

import msgspec
import numpy as np
import pytest
from vllm_trials import cell, schedule

from engines.builtin.registries import DEVICES, REPRESENTATIONS
from engines.protocol import SCRIPT, ContradictionError, EngineConfig
from engines.vllm.arguments import scheduling
from engines.vllm.host_path import HostPathEngine, num_blocks
from engines.vllm.in_process import InProcessEngine
from engines.vllm.settings import NATIVE
from harness.cli.main import main
from harness.experiment.grid import Grid, cross, traits

SCHEDULE = schedule([4, 9], [3, 5])
CONFIG = EngineConfig(max_num_seqs=8, max_model_len=64, device="null", representation=NATIVE)


def crossed(of=SCHEDULE, **axes: list[str | int]) -> Grid:
    given = {"workload": ["one"], "engine": ["vllm-hostpath"]} | axes
    return cross(given, {"one": of}, {"one": "opt-125m"})


def left_out(of=SCHEDULE, **axes: list[str | int]) -> str:
    with pytest.raises(ValueError, match=r"\S") as raised:
        crossed(of, **axes)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("axes", "filled"),
    [
        ({}, ("modelled", "opt-125m-h200-measured", NATIVE)),
        ({"device": ["null"]}, ("null", "", NATIVE)),
        ({"device": ["null"], "device_profile": ["opt-125m-h100"]}, ("null", "", NATIVE)),
        ({"device_profile": ["opt-125m-h100"]}, ("modelled", "opt-125m-h100", NATIVE)),
        ({"model": ["llama-3-8b"]}, ("modelled", "llama-3-8b-h200-measured", NATIVE)),
        (
            {"representation": ["flat_arrays"]},
            ("modelled", "opt-125m-h200-measured", "flat_arrays"),
        ),
        ({"engine": ["vllm"], "device": ["cpu"], "device_profile": ["any"]}, ("cpu", "", NATIVE)),
        ({"engine": ["vllm"], "device": ["cuda"]}, ("cuda", "", NATIVE)),
    ],
)
def test_what_is_left_open_is_filled_in(axes, filled):
    (made,) = crossed(**axes).cells
    assert (made.device, made.device_profile, made.representation) == filled


def test_real_vllm_runs_where_it_can():
    (made,) = crossed(engine=["vllm"]).cells
    assert made.device in ("cpu", "cuda")


def test_a_grid_keeps_what_goes_and_says_why_the_rest_does_not():
    grid = crossed(
        engine=["builtin", "vllm-hostpath"],
        device=["null"],
        representation=["flat_arrays", "tensor"],
        delivery=["per_request", "columnar"],
        engine_core=["in-process", "process"],
    )
    kept = {
        (each.engine, each.representation, each.delivery, each.engine_core) for each in grid.cells
    }
    assert kept == {
        *(
            ("builtin", *each, "in-process")
            for each in product(["flat_arrays", "tensor"], ["per_request", "columnar"])
        ),
        *(
            ("vllm-hostpath", "flat_arrays", "per_request", core)
            for core in ("in-process", "process")
        ),
    }
    for words in (
        "--delivery columnar: is of engine builtin",
        "tensor: it does not outlive the step",
        "--axis engine-core=process: is of engine vllm-hostpath and vllm",
    ):
        assert sum(words in why for why in grid.left_out) == 1


@pytest.mark.parametrize("name", [NATIVE, *REPRESENTATIONS.names()])
def test_the_host_path_takes_each_shape_that_outlives_the_step(name):
    config = replace(CONFIG, representation=name)
    owns = name == NATIVE or REPRESENTATIONS.load(name).owns_memory
    with nullcontext() if owns else pytest.raises(ContradictionError, match="outlive the step"):
        assert HostPathEngine.complete(config).representation == name


SEVERAL = replace(SCHEDULE, num_accepted=np.array([1, 2]))


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"engine": ["vllm"], "device": ["cpu"]}, "use --engine vllm-hostpath"),
        ({"logprobs": ["lists:2"]}, "leave it out"),
    ],
)
def test_what_drafts_do_not_go_with_is_said(axes, words):
    found = left_out(SEVERAL, **({"device": ["null"]} | axes))
    assert "several tokens per step" in found
    assert words in found


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"device": ["cuda"]}, "'cuda'"),
        ({"device": ["cpu"]}, "'cpu'"),
        ({"device_profile": ["opt-125m-h20"]}, "opt-125m-h20"),
        ({"representation": ["list_of_list"]}, "did you mean list_of_lists"),
        ({"output_processing": ["inlined"]}, "'inlined'"),
        ({"worker": ["proces"]}, "'proces'"),
        ({"model": ["opt-125"], "device": ["null"]}, "did you mean opt-125m"),
        ({"batch_size": [0]}, "--batch-size 0"),
        ({"engine": ["vllm"], "device": ["null"]}, "'null': real vLLM runs on cpu or cuda"),
        ({"engine": ["vllm"], "device": ["modelled"]}, "--engine vllm-hostpath"),
        ({"engine": ["vllm"], "device": ["cpu"], "gc": ["on_wait"]}, "--gc on_wait"),
        (
            {"engine": ["vllm"], "device": ["cpu"], "representation": ["flat_arrays"]},
            "flat_arrays: real vLLM",
        ),
        (
            {"engine": ["vllm"], "device": ["cpu"], "delivery": ["columnar"]},
            "--delivery columnar: is of engine builtin; leave it out with vllm",
        ),
        ({"engine": ["vllm"], "device": ["cpu"], "batch_size": [0]}, "--batch-size 0"),
        ({"engine": ["vllm"], "device": ["cpu"], "model": ["opt-tin"]}, "opt-tiny"),
        ({"engine": ["builtin"], "engine_core": ["process"]}, "--axis engine-core=process"),
        ({"engine_core": ["proces"]}, "'proces'"),
        ({"device": ["null"], "tensor_parallel": [2]}, "each rank has its own; use --worker"),
        (
            {"engine": ["vllm"], "device": ["cpu"], "tensor_parallel": [2]},
            "--axis tensor-parallel=2",
        ),
        (
            {"device": ["null"], "setup": ["served"], "engine_core": ["process"]},
            "front end and engine core in one process",
        ),
        ({"device": ["null"], "setup": ["serve"]}, "must be lean, shipped or served"),
        ({"front_end": ["asinc"]}, "--axis front-end=asinc"),
        ({"front_end": ["async"]}, "add --axis engine-core=process"),
        ({"logprobs": ["arrays:2"]}, "use lists:K"),
        ({"detokenizer": ["byte_table"]}, "use decode_stream or none"),
        ({"engine": ["vllm"], "device": ["cpu"], "worker": ["proces"]}, "'proces'"),
        ({"engine": ["vllm"], "device": ["cpu"], "engine_core": ["proces"]}, "'proces'"),
    ],
)
def test_what_cannot_be_run_is_a_sentence(axes, words):
    assert words in left_out(**axes)


def test_messages_are_seen_where_the_engine_core_is_here_and_the_workers_are_not():
    for engine, device in (("vllm-hostpath", "null"), ("vllm", "cpu")):
        for worker, core in product(("in-process", "process"), repeat=2):
            asked = cell(engine, device=device, worker=worker, engine_core=core)
            assert traits(asked).has_messages == ((worker, core) == ("process", "in-process"))


def test_on_wait_goes_with_the_host_path():
    assert len(crossed(device=["null"], gc=["on_wait"]).cells) == 1


def test_only_one_process_without_a_clock_is_exact():
    for device, worker, core, processing in product(
        ("null", "modelled"),
        ("in-process", "process"),
        ("in-process", "process"),
        ("inline", "overlapped"),
    ):
        axes = {
            "device": device,
            "worker": worker,
            "engine_core": core,
            "output_processing": processing,
        }
        alone = (device, worker, core) == ("null", "in-process", "in-process")
        assert traits(cell("vllm-hostpath", **axes)).is_exact == alone
        assert not traits(cell("vllm", **axes | {"device": "cpu"})).is_exact


def test_as_shipped_the_release_decides_and_no_flag_does():
    shipped = cell("vllm-hostpath", device="null", setup="shipped")
    assert traits(shipped).is_exact
    assert not traits(msgspec.structs.replace(shipped, engine_core="process")).is_exact
    served = cell("vllm-hostpath", device="null", setup="served")
    assert traits(served).is_exact
    config = replace(CONFIG, setup="shipped")
    assert HostPathEngine.complete(config).setup == "shipped"
    for changes, flag in [
        ({"output_processing": "overlapped"}, "--output-processing overlapped"),
        ({"enable_prefix_caching": True}, "--axis prefix-caching=on"),
    ]:
        with pytest.raises(
            ContradictionError, match=f"^--axis setup=shipped with {flag}: the release"
        ):
            HostPathEngine.complete(replace(config, **changes))
    with pytest.raises(
        ValueError, match="--axis setup=as_shipped: must be lean, shipped or served"
    ):
        HostPathEngine.complete(replace(CONFIG, setup="as_shipped"))
    assert scheduling(config, NewArgs) == {}
    assert scheduling(config, MiddleArgs).keys() == {"scheduler_cls"}


@dataclass
class OldArgs:
    scheduler_cls: str = "vllm.core.scheduler.Scheduler"


@dataclass
class MiddleArgs:
    scheduler_cls: str = "vllm.core.scheduler.Scheduler"
    async_scheduling: bool = False


@dataclass
class NewArgs:
    scheduler_cls: str | None = None
    async_scheduling: bool | None = None


def test_scheduling_is_asked_for_in_the_words_of_the_release():
    inline, overlapped = CONFIG, replace(CONFIG, output_processing="overlapped")
    schedulers = "vllm.v1.core.sched"
    assert scheduling(inline, NewArgs) == {"async_scheduling": False}
    assert scheduling(overlapped, NewArgs) == {"async_scheduling": True}
    assert scheduling(inline, MiddleArgs)["scheduler_cls"] == f"{schedulers}.scheduler.Scheduler"
    assert scheduling(overlapped, MiddleArgs) == {
        "async_scheduling": True,
        "scheduler_cls": f"{schedulers}.async_scheduler.AsyncScheduler",
    }
    assert scheduling(inline, OldArgs)["scheduler_cls"] == f"{schedulers}.scheduler.Scheduler"
    with pytest.raises(ValueError, match="no async scheduling; leave `overlapped` out"):
        scheduling(overlapped, OldArgs)


@pytest.mark.parametrize("max_model_len", [1, 15, 16, 17, 64, 1000])
def test_vllm_has_the_built_in_engines_blocks_and_its_own(max_model_len):
    config = replace(CONFIG, max_model_len=max_model_len)
    built_in = DEVICES.load("null").num_kv_tokens(config) // config.block_size
    assert num_blocks(config) == built_in + 1
    assert built_in >= config.max_num_seqs * -(-max_model_len // config.block_size)


def test_the_engines_say_what_they_are():
    assert (HostPathEngine.script, HostPathEngine.has_wait_hook) == (SCRIPT, True)
    assert (InProcessEngine.script, InProcessEngine.has_wait_hook) == ("", False)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--axis", "model=nowhere/opt"], "unknown model 'nowhere/opt'"),
        (["--axis", "model={tmp}"], "config.json cannot be read"),
        (["--release", "{tmp}"], "holds no vllm/__init__.py; give the top folder"),
        (["--release", "nowhere/vllm"], "nowhere/vllm holds no vllm/__init__.py"),
        (["--release", "0.11.0"], "vLLM 0.11.0 is not prepared; run gcbench releases vllm"),
        (["--release", "0.2"], "vLLM 0.2 is too old"),
        ([], "run `make vllm`"),
    ],
)
@pytest.mark.usefixtures("cache")
def test_a_mistake_at_the_command_line_is_a_sentence(tmp_path, capsys, flags, words):
    given = [flag.replace("{tmp}", str(tmp_path)) for flag in flags]
    output = ["--output", str(tmp_path / "runs"), "--num-requests", "2", "--device", "null"]
    assert main(["run", "--engine", "vllm-hostpath", *given, *output]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert words in said
    assert "Traceback" not in said
