"""An engine or a representation that is not what its protocol says is refused in a sentence."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest
import small

from engines.builtin import registries
from engines.builtin.engine import Engine
from engines.builtin.representations.list_of_lists import ListOfLists
from engines.contract import engine_breach, representation_breach
from engines.protocol import ContradictionError, Launch, Traits, WatchedEngine
from engines.registry import ENGINES, Registry
from harness.cli.main import main
from harness.experiment.grid import cross
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import counting_modes, counting_shared, heap_shared


@pytest.mark.parametrize("registry", [ENGINES, registries.REPRESENTATIONS], ids=lambda r: r.kind)
def test_what_is_built_in_keeps_its_contract(registry):
    breach = engine_breach if registry is ENGINES else representation_breach
    assert [breach(registry.load(name)) for name in registry.names()] == [""] * len(
        registry.names()
    )


@pytest.mark.parametrize("shapes", [(), [("a", "b")], (("a",),), ("ab",), ((1, 2),), None])
def test_an_engine_without_a_shape_to_measure(shapes):
    engine = type("Plugged", (Engine,), {"shapes": shapes})
    assert engine_breach(engine).startswith(f"has shapes {shapes!r}: must be a tuple of at least")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"package": ""}, "has no package"),
        ({"package": 3}, "has no package"),
        ({"has_wait_hook": None}, "has no has_wait_hook"),
        ({"launch": None}, "has no method launch"),
        ({"step": None, "shutdown": 1}, "has no methods step, shutdown"),
    ],
)
def test_an_engine_that_lacks_something(given, words):
    assert engine_breach(type("Plugged", (Engine,), given)).startswith(words)


def test_an_engine_that_is_made_by_a_function_is_judged_by_what_it_answers_itself():
    def build(config):
        return Engine(config)

    assert engine_breach(build).startswith("has no methods complete, traits, launch, prepare")
    for name in ("complete", "traits", "launch", "prepare", "has_wait_hook", "package", "shapes"):
        setattr(build, name, getattr(Engine, name))
    assert engine_breach(build) == ""


class Least(WatchedEngine):
    """As little as an engine can say of itself."""

    has_wait_hook = False
    package = "least"
    shapes = (("", "per_request"),)

    @staticmethod
    def complete(config):
        return replace(config, device="theirs")

    @staticmethod
    def traits(config):
        return Traits()

    @staticmethod
    def launch(python, release):
        return Launch(python, {})

    @staticmethod
    def prepare(release):
        pass


def test_an_engine_that_says_nothing_of_itself_is_measured_as_if_it_could_nothing(
    monkeypatch, tmp_path
):
    assert engine_breach(Least) == ""
    monkeypatch.setattr(ENGINES, "load", lambda name: Least)
    schedule = small.schedule([2])
    axes = {"workload": ["small"], "engine": ["least"], "representation": [""]}
    (cell,) = cross(axes, {"small": schedule}, {"small": ""}).cells
    assert cell.device == "theirs"
    assert counting_modes([cell], ["counts", "wire"]) == ["wire"]
    assert counting_shared(small.trial(schedule, tmp_path, cell, mode="counts")) is None
    assert heap_shared(small.trial(schedule, tmp_path, cell, slice_steps=1)) is None
    assert LocalExecutor(1.0).batch_size([cell]) == 1
    with pytest.raises(ValueError, match="engine least does not say when its device is busy"):
        cross(axes | {"gc": ["on_wait"]}, {"small": schedule}, {"small": ""})


def test_one_that_contradicts_its_configuration_is_left_out_of_a_grid(monkeypatch):
    def complete(config):
        if config.max_num_seqs > 1:
            raise ContradictionError("batch size 2: it takes one")
        return config

    monkeypatch.setattr(Least, "complete", staticmethod(complete))
    monkeypatch.setattr(ENGINES, "load", lambda name: Least)
    axes = {"workload": ["small"], "engine": ["least"], "batch_size": [1, 2]}
    found = cross(axes, {"small": small.schedule([2])}, {"small": ""})
    assert [cell.batch_size for cell in found.cells] == [1]
    assert found.left_out == ["batch size 2: it takes one"]


@pytest.mark.parametrize("engine", [SimpleNamespace(), "Engine", None])
def test_what_is_no_engine_at_all(engine):
    assert "and not a class" in engine_breach(engine)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columnar": None}, "has no columnar"),
        ({"owns_memory": "yes"}, "has no owns_memory"),
        ({"nbytes": None, "columns": None}, "has no methods columns, nbytes"),
    ],
)
def test_a_representation_that_lacks_something(given, words):
    plugged = type("Plugged", (ListOfLists,), {"columnar": False, "owns_memory": True, **given})
    assert representation_breach(plugged).startswith(words)


@pytest.fixture
def plugged(monkeypatch):
    """Registers an engine with no shapes by the name ``plugged``."""
    module = ModuleType("plugged_engine")
    module.Plugged = type("Plugged", (Engine,), {"shapes": ()})
    monkeypatch.setitem(sys.modules, "plugged_engine", module)
    entries = {"builtin": ENGINES.check("builtin"), "plugged": "plugged_engine:Plugged"}
    registry = Registry("engine", entries, breach=engine_breach)
    monkeypatch.setattr(ENGINES, "load", registry.load)
    monkeypatch.setattr(ENGINES, "check", registry.check)


@pytest.mark.parametrize(
    "command",
    [
        ["gate", "HEAD", "--exact-only"],
        ["bisect", "HEAD", "--metric", "handoff_bytes"],
        ["compare"],
        ["run"],
        ["explain"],
        ["cadence"],
    ],
    ids=lambda command: command[0],
)
def test_each_command_says_so_before_it_does_anything(plugged, command, tmp_path, capsys):
    status = main([*command, "--engine", "plugged", "--output", str(tmp_path)])
    said = capsys.readouterr().err
    assert (status, list(tmp_path.iterdir())) == (2, [])
    assert said.startswith("gcbench: engine 'plugged' (plugged_engine:Plugged) has shapes ()")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module_anywhere:X", "ModuleNotFoundError: No module named"),
        ("math:NoSuchName", "AttributeError: module 'math' has no attribute"),
        ("math", "AttributeError"),
        ("no_such_module_anywhere", "ModuleNotFoundError"),
    ],
)
def test_what_another_package_names_and_is_not_there(monkeypatch, target, words):
    from importlib.metadata import EntryPoint, EntryPoints

    points = EntryPoints([EntryPoint("theirs", target, "g")])
    monkeypatch.setattr("engines.registry.entry_points", lambda group: points)
    with pytest.raises(ValueError, match=rf"^number 'theirs' cannot be loaded from .*{words}"):
        Registry("number", {}, group="g").load("theirs")
