"""An engine or a representation that is not what its protocol says is refused in a sentence."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import msgspec
import numpy as np
import pytest
import small

from engines.builtin import registries
from engines.builtin.engine import Engine
from engines.builtin.representations.list_of_lists import ListOfLists
from engines.contract import engine_breach, representation_breach
from engines.protocol import (
    PHASES,
    ContradictionError,
    Delivered,
    EngineClass,
    FinishReason,
    Launch,
    StepEngine,
    StepOutput,
    Traits,
)
from engines.registry import ENGINES, Registry
from harness.cli.main import main
from harness.experiment.grid import cross
from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import counting_modes, counting_shared, heap_shared
from harness.trial.run import run_trial


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
        ({"package": "src/2"}, "has no package"),
        ({"has_wait_hook": None}, "has no has_wait_hook"),
        ({"axes": ("wire",)}, "has no axes"),
        ({"own_values": None}, "has no own_values"),
        ({"launch": None}, "has no method launch"),
        ({"step": None, "shutdown": 1}, "has no methods step, shutdown"),
    ],
)
def test_an_engine_that_lacks_something(given, words):
    assert engine_breach(type("Plugged", (Engine,), given)).startswith(words)


def test_an_engine_that_is_made_by_a_function_is_judged_by_what_it_answers_itself():
    def build(config):
        return Engine(config)

    asked = ("complete", "traits", "launch", "releases", "prepare")
    assert engine_breach(build).endswith(f"(has no methods {', '.join(asked)})")
    for name in (*asked, *EngineClass.__annotations__):
        setattr(build, name, getattr(Engine, name))
    assert engine_breach(build) == ""


class Bare(StepEngine):
    """One that nobody has written yet."""

    has_wait_hook = False
    package = "least"
    axes = frozenset()
    own_values = {"device": ("theirs",)}
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
    def releases():
        pass

    @staticmethod
    def prepare(release):
        pass


class Least(Bare):
    """As little as an engine can be: a token a step for each request."""

    role = "engine"
    vocab_size = 8
    script = ""
    phase_stamps = [0] * (len(PHASES) + 1)

    def __init__(self, config):
        self.left = {}
        self.lengths = {}

    def add_request(self, request_index, prompt_token_ids, params, priority=0):
        self.left[request_index] = self.lengths[request_index] = params.max_tokens

    def abort_request(self, request_index):
        self.left.pop(request_index, None)

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        rows = np.array(list(self.left), np.int64)
        ended = np.array([index for index, left in self.left.items() if left == 1], np.int64)
        self.left = {index: left - 1 for index, left in self.left.items() if left > 1}
        reasons = np.full(len(ended), FinishReason.LENGTH, np.int8)
        outputs = [[5]] * len(rows)
        return StepOutput([Delivered(rows, np.ones(len(rows), np.int32), outputs, ended, reasons)])

    def output_token_ids(self, request_index):
        return np.full(self.lengths.pop(request_index), 5, np.int32)


def test_what_an_engine_must_write_is_asked_for_and_nothing_else():
    assert engine_breach(Bare) == (
        "has no methods add_request, abort_request, has_unfinished_requests, step, output_token_ids"
    )
    assert engine_breach(Least) == ""


def test_that_is_enough_to_be_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(ENGINES, "load", lambda name: Least)
    cell = msgspec.structs.replace(small.CELL, engine="least", gc="as_is", heap_objects=0)
    for mode in ("counts", "probed", "tracked"):
        found = run_trial(
            small.trial(small.schedule([2, 3]), tmp_path, cell, mode=mode), lambda word: None
        )
        assert (found.invalid, found.wall_seconds > 0) == ("", True)
    with pytest.raises(ValueError, match="does not show what crosses"):
        run_trial(small.trial(small.schedule([2]), tmp_path, cell, mode="wire"), lambda word: None)


def test_an_engine_that_says_nothing_of_itself_is_measured_as_if_it_could_nothing(
    monkeypatch, tmp_path
):
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
        ["advise", "--predict"],
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


def test_a_name_that_two_packages_have_registered_is_refused(monkeypatch):
    from importlib.metadata import EntryPoint, EntryPoints

    points = EntryPoints([EntryPoint("toy", target, "g") for target in ("one:A", "one:A", "two:B")])
    monkeypatch.setattr("engines.registry.entry_points", lambda group: points)
    with pytest.raises(ValueError, match="'toy' is registered twice, as one:A and two:B; uninst"):
        Registry("engine", {}, group="g").check("toy")
