"""A record, its words on the command line, and what that makes of them: one and the same."""

import shlex
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engines.adapted import as_engine
from engines.adapter import Adapter
from engines.registry import ENGINES
from harness.axes import AXES
from harness.cli.bisect import bisect
from harness.cli.compare import compare
from harness.cli.doctor import doctor
from harness.cli.explain import explain
from harness.cli.flags import asked
from harness.cli.gate import gate
from harness.cli.releases import releases
from harness.cli.run import run
from harness.cli.settings import settings_toml
from harness.verbs.bisect import BisectRequest
from harness.verbs.compare import CompareRequest
from harness.verbs.engine_values import engine_values
from harness.verbs.explain import ExplainRequest
from harness.verbs.gate_request import GateRequest
from harness.verbs.noise import NoiseRequest
from harness.verbs.releases import ReleasesRequest
from harness.verbs.request import Field, VerbRequest, fields, made, words
from harness.verbs.run import RunRequest

ASKED: list[tuple[click.Command, type[VerbRequest], dict[str, Any]]] = [
    (run, RunRequest, {}),
    (compare, CompareRequest, {}),
    (explain, ExplainRequest, {}),
    (gate, GateRequest, {"base": "main"}),
    (bisect, BisectRequest, {"good": "main", "metric": "num_steps"}),
    (releases, ReleasesRequest, {"engine": "vllm"}),
    (doctor, NoiseRequest, {}),
]
POSITIONS = {"gate": ["main"], "bisect": ["main"], "releases": ["vllm"]}
TEXTS = st.text("abc:.09-", min_size=1, max_size=6).filter(lambda text: not text.startswith("-"))


def value_of(field: Field) -> st.SearchStrategy[Any]:
    flag = field.flag
    if flag.choices:
        return st.sampled_from([each for each in flag.choices if each])
    if field.kind is bool:
        return st.booleans()
    if field.kind is int:
        low, high = int(max(flag.least, -1000)), int(min(flag.most, 1000))
        return st.integers(low, high)
    if field.kind is float:
        low, high = max(flag.least, flag.above + 1, 0.0), min(flag.most, 1000.0)
        return st.floats(low, high)
    return st.lists(TEXTS, min_size=1, max_size=3) if field.kind is list else TEXTS


def axis_values(name: str) -> st.SearchStrategy[Any]:
    each = st.integers(0, 9) if AXES[name].kind is int else TEXTS
    return st.lists(each, min_size=1, max_size=3, unique=True)


@pytest.mark.parametrize(("command", "kind", "positions"), ASKED, ids=str)
@examples(60)
@given(data=st.data())
def test_the_command_line_makes_of_its_words_the_same_record(command, kind, positions, data):
    of_fields = {each.name: value_of(each) for each in fields(kind)}
    of_axes = {name: axis_values(name) for name in AXES if name not in kind.decided}
    asked_for = data.draw(st.fixed_dictionaries({}, optional=of_fields | of_axes))
    for axis in AXES.values():
        if axis.name in asked_for and asked_for.keys() & axis.overrules:
            del asked_for[axis.name]  # the command line refuses the two together
    request = made(kind, positions | asked_for)
    where = POSITIONS.get(command.name, [])
    line = shlex.split(shlex.join([*where, *words(request)]))
    assert asked(kind, command.make_context(command.name, line)) == request
    with TemporaryDirectory() as folder:
        path = Path(folder, "asked.toml")
        path.write_text(settings_toml(request))
        of_file = asked(kind, command.make_context(command.name, [*where, f"@{path}"]))
    assert of_file.grid() == request.grid()
    assert replace(of_file, axes=request.axes) == request


def test_a_file_has_the_values_that_a_plugged_in_engine_knows(monkeypatch):
    own = as_engine(type("Own", (Adapter,), {"representations": ("lists", "array")}))
    monkeypatch.setattr(ENGINES, "load", lambda name: own)
    request = CompareRequest(axes={"engine": ["own"]})
    said = tomllib.loads(settings_toml(request, engine_values(request)))
    assert said["representation"] == "lists,array"
    assert "delivery" not in said, "of which it has one"


def test_a_flag_wins_over_a_file_and_a_later_file_over_an_earlier(tmp_path):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('gc = "default,freeze"\nrounds = 3\nbatch-size = [4, 8]\nstop = ["a"]')
    second.write_text('rounds = 4\nbatch_size = 16\nstop = "b"')
    line = [f"@{first}", "--gc", "disabled", f"@{second}", "--axis", "stop=c"]
    found = asked(CompareRequest, compare.make_context("compare", line))
    assert found == CompareRequest(
        rounds=4, stop=["c"], axes={"gc": ["disabled"], "batch_size": [16]}
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rounds = {a = 1}", "asked.toml: rounds: give a text, a number, true or false, or a list"),
        ("rounds = [[1]]", "asked.toml: rounds: give a text, a number"),
        ("rounds 3", "asked.toml: not TOML"),
        ("roundz = 3", "roundz: no such flag or axis here; did you mean rounds"),
        ("rounds = 0", "--rounds 0: must be at least 1"),
        ("gc = ''", "--gc: no value given"),
    ],
)
def test_what_a_file_cannot_ask_is_a_sentence(text, says, tmp_path):
    path = tmp_path / "asked.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        asked(CompareRequest, compare.make_context("compare", [f"@{path}"]))
    path.unlink()
    with pytest.raises(ValueError, match=r"asked\.toml: the experiment cannot be read: No such"):
        compare.make_context("compare", [f"@{path}"])


def test_an_axis_takes_one_value_several_and_a_text_of_several():
    for given_as in ("default,freeze", ["default", "freeze"], ("default", "freeze", "default")):
        assert made(CompareRequest, {"gc": given_as}).values("gc") == ["default", "freeze"]
    assert made(CompareRequest, {"batch_size": 4}).values("batch_size") == [4]
    assert made(CompareRequest, {"batch_size": "4,8"}).values("batch_size") == [4, 8]


@pytest.mark.parametrize(
    ("kind", "given_as", "says"),
    [
        (CompareRequest, {"round": 3}, "round: no such flag or axis here; did you mean rounds"),
        (CompareRequest, {"rounds": "three"}, "--rounds three: must be a whole number"),
        (CompareRequest, {"rounds": 0}, "--rounds 0: must be at least 1"),
        (CompareRequest, {"tolerance": float("nan")}, "--tolerance nan: must be at least 0 and"),
        (CompareRequest, {"batch_size": "many"}, "--batch-size many: must be whole numbers"),
        (CompareRequest, {"gc": []}, "--gc: no value given"),
        (CompareRequest, {"respect_eos": "yes"}, "--axis respect-eos=yes: must be on or off"),
        (GateRequest, {}, "base: must be given"),
        (GateRequest, {"base": "a", "release": "b"}, "release: no such flag or axis here"),
        (RunRequest, {"mode": "time"}, "--mode time: did you mean timing"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(kind, given_as, says):
    with pytest.raises(ValueError, match=says):
        made(kind, given_as)


def test_a_record_of_ones_own_is_checked_as_one_of_the_command_line_is():
    with pytest.raises(ValueError, match="--rounds 0: must be at least 1"):
        CompareRequest(rounds=0)
    with pytest.raises(ValueError, match="wier: no axis here; did you mean wire"):
        CompareRequest(axes={"wier": ["pickle"]})
