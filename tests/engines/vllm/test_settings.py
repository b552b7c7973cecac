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


PLUGINS = """\
[vllm.general_plugins]
theirs = json:loads
broken = no_such_package:register
[vllm.platform_plugins]
board = plugged_in_here:platform
idle = plugged_in_here:nothing
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    folder = tmp_path / "theirs-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(PLUGINS)
    code = "def platform():\n    return 'their.Board'\n\ndef nothing():\n    return None\n"
    (tmp_path / "plugged_in_here.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("plugins")
def test_plug_ins_of_the_user_stay():
    os.environ["VLLM_PLUGINS"] = "theirs,idle"
    for _ in range(2):
        set_environment(engine_core="in-process", host_path=True)
        assert os.environ["VLLM_PLUGINS"] == "gcbench,theirs,idle"
    os.environ["VLLM_PLUGINS"] = "board"
    set_environment(engine_core="in-process", host_path=False)
    assert os.environ["VLLM_PLUGINS"] == "gcbench,board"


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("absent", "names absent, and no such plug-in is installed"),
        ("theirs,broken", "broken of VLLM_PLUGINS cannot be loaded .*no_such_package"),
        ("board", "board of VLLM_PLUGINS is a platform, their.Board, and vllm-hostpath"),
    ],
)
def test_a_plug_in_that_cannot_stay_is_a_sentence(named, words):
    os.environ["VLLM_PLUGINS"] = named
    with pytest.raises(ValueError, match=words):
        set_environment(engine_core="in-process", host_path=True)


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
