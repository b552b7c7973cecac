"""Names lead to implementations, and nothing is imported before it is asked for."""

import importlib.metadata
from importlib.metadata import EntryPoint, EntryPoints

import pytest
from harness_free import null_config

from engines.builtin import registries
from engines.builtin.engine import Engine
from engines.registry import ENGINES, Registry

ALL = [value for value in vars(registries).values() if isinstance(value, Registry)] + [ENGINES]


@pytest.mark.parametrize("registry", ALL, ids=lambda registry: registry.kind)
def test_every_name_loads(registry):
    for name in registry.names():
        assert (registry.load(name) is None) == (name == "none")
        module, attribute = registry.check(name).split(":")
        assert module.startswith("engines.")
        assert attribute


def test_an_unknown_name_is_told_the_nearest():
    registry = Registry("colour", {"blue": "m:Blue", "green": "m:Green"})
    with pytest.raises(ValueError, match=r"^unknown colour 'gren'; did you mean green\?$"):
        registry.load("gren")
    with pytest.raises(ValueError, match=r"^unknown colour 'xyzzy'; did you mean blue, green\?$"):
        registry.check("xyzzy")


def test_a_package_adds_names_and_cannot_take_one(monkeypatch):
    points = [
        EntryPoint("zeta", "math:pi", "g"),
        EntryPoint("alpha", "math:tau", "g"),
        EntryPoint("own", "math:e", "g"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: EntryPoints(points))
    monkeypatch.setattr("engines.registry.entry_points", lambda group: EntryPoints(points))
    registry = Registry("number", {"own": "math:inf"}, group="g")
    assert registry.names() == ["own", "alpha", "zeta"]
    assert registry.load("own") == float("inf")
    assert registry.load("zeta") == pytest.approx(3.14159, abs=1e-5)
    assert Registry("number", {"own": "math:inf"}).names() == ["own"]


@pytest.mark.slow
def test_torch_stays_out_until_something_of_it_is_asked_for(fresh_interpreter):
    seen = fresh_interpreter(
        "import json, sys\n"
        "from dataclasses import replace\n"
        "from engines.builtin.engine import Engine\n"
        "from engines.protocol import EngineConfig\n"
        "config = EngineConfig(max_num_seqs=1, max_model_len=8)\n"
        "Engine(config)\n"
        "before = 'torch' in sys.modules\n"
        "Engine(replace(config, representation='tensor'))\n"
        "print(json.dumps([before, 'torch' in sys.modules]))\n"
    )
    assert seen == [False, True]


def test_the_engine_is_found_by_name():
    assert ENGINES.load("builtin") is Engine


def test_what_is_complete_stays_as_it_is():
    complete = Engine.complete(null_config(representation="", device_profile="opt-125m-h200"))
    assert (complete.representation, complete.device_profile) == ("list_of_lists", "")
    assert Engine.complete(complete) == complete
