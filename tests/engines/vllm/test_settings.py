"""What vLLM's processes are told crosses whole, by environment and configuration."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engines.protocol import EngineConfig
from engines.vllm.settings import (
    CONTROL_VARIABLE,
    HOST_PATH_VARIABLE,
    additional_config,
    read_additional_config,
    set_environment,
)

CONFIG = EngineConfig(max_num_seqs=8, max_model_len=64, seed=2**40, num_accepted=(1, 3))


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """An environment that is put back."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in (HOST_PATH_VARIABLE, "VLLM_LOGGING_LEVEL", "VLLM_CPU_OMP_THREADS_BIND"):
        os.environ.pop(name, None)


def test_a_configuration_comes_back_equal_even_by_json():
    carried = json.loads(json.dumps(additional_config(CONFIG, "/log")))
    assert read_additional_config(SimpleNamespace(additional_config=carried)) == (CONFIG, "/log")


@pytest.mark.parametrize(("engine_core", "switch"), [("process", "1"), ("in-process", "0")])
def test_the_engine_cores_process_is_vllms_own_switch(engine_core, switch):
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "other"
    set_environment(engine_core=engine_core, host_path=False)
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == switch
    assert os.environ["VLLM_PLUGINS"] == "gcbench"
    assert HOST_PATH_VARIABLE not in os.environ


def test_what_the_user_has_set_is_left_where_it_changes_no_measurement():
    os.environ["VLLM_LOGGING_LEVEL"] = "DEBUG"
    set_environment(engine_core="in-process", host_path=True)
    assert os.environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert os.environ[HOST_PATH_VARIABLE]


def test_each_of_several_ranks_may_run_on_any_core():
    """vLLM would look for a NUMA node for each of them, and machines like this one have one."""
    set_environment(engine_core="in-process", host_path=True)
    assert "VLLM_CPU_OMP_THREADS_BIND" not in os.environ
    set_environment(engine_core="in-process", host_path=True, ranks=3)
    masks = os.environ["VLLM_CPU_OMP_THREADS_BIND"].split("|")
    assert [set(map(int, mask.split(","))) for mask in masks] == [os.sched_getaffinity(0)] * 3


def test_an_engine_that_cannot_start_leaves_nothing(monkeypatch, tmp_path):
    from engines.vllm.host_path import HostPathEngine

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    config = replace(CONFIG, num_accepted=(1,), device="null", representation="native")
    with pytest.raises(ModuleNotFoundError, match="vllm"):
        HostPathEngine(config)
    assert CONTROL_VARIABLE not in os.environ
    assert list(tmp_path.iterdir()) == []
