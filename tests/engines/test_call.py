"""A function as an engine: called as often as requests and steps say, or refused in a sentence."""

import gc

import numpy as np
import pytest
import small

from engines.call import engine_of
from engines.call.first_call import call_seconds
from engines.call.target import function_of
from engines.contract import engine_breach
from engines.protocol import EngineConfig, SamplingParams
from engines.registry import ENGINES
from harness.cli.main import main
from harness.experiment.grid import cross
from harness.trial.run import run_trial

FUNCTIONS = """
import os, time
calls = 0
kept = []
number = 5
def quick():
    global calls
    calls += 1
def keeps():
    kept.append([])
def takes(a, b=1): ...
async def waits(): ...
def makes(): return waits()
def yields(): yield 1
def raises(): raise KeyError("k")
def prints(): print("hi")
def exits(): raise SystemExit(3)
def ends(): os._exit(4)
def sleeps(): time.sleep(1.2)
class Stepper:
    def __init__(self): self.taken = 0
    def step(self): self.taken += 1
class Needs:
    def __init__(self, it): ...
    def step(self): ...
stepper = Stepper()
"""


@pytest.fixture(autouse=True)
def functions(tmp_path, monkeypatch):
    (tmp_path / "called_functions.py").write_text(FUNCTIONS)
    (tmp_path / "broken_module.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


def engine(name):
    return engine_of(f"called_functions:{name}")(EngineConfig(max_num_seqs=8, max_model_len=8))


def test_it_is_an_engine_under_its_own_name():
    assert engine_breach(ENGINES.load("called_functions:quick")) == ""
    assert ENGINES.load("called_functions:quick").package == "called_functions"


@pytest.mark.parametrize("lengths", [[3], [1, 3, 2], [2, 2]])
def test_each_request_is_a_call_in_each_of_its_steps(lengths):
    import called_functions

    under, called_functions.calls = engine("quick"), 0
    for index, length in enumerate(lengths):
        under.add_request(index, np.zeros(1, np.int32), SamplingParams(length))
    rows, ended = [], []
    while under.has_unfinished_requests():
        (delivered,) = under.step().delivered
        rows.append(len(delivered.request_index))
        ended += delivered.finished.tolist()
    assert rows == [sum(length > n for length in lengths) for n in range(max(lengths))]
    assert called_functions.calls == sum(lengths)
    assert sorted(ended) == list(range(len(lengths)))
    assert [len(under.output_token_ids(n)) for n in range(len(lengths))] == lengths


def test_requests_that_come_and_go_between_steps_leave_the_others_their_calls():
    under = engine("quick")
    under.add_request(0, np.zeros(1, np.int32), SamplingParams(4))
    under.step()
    under.add_request(1, np.zeros(1, np.int32), SamplingParams(9))
    under.step()
    under.abort_request(1)
    taken = 0
    while under.has_unfinished_requests():
        under.step()
        taken += 1
    assert taken == 2


def test_a_step_between_two_makes_nothing_that_the_collector_sees():
    under = engine("quick")
    under.add_request(0, np.zeros(1, np.int32), SamplingParams(50))
    under.step()
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(40):
            under.step()
        assert gc.get_count()[0] - before < 5
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["Stepper", "stepper"])
def test_an_object_with_step_is_stepped(name):
    step = function_of(f"called_functions:{name}")
    before = step.__self__.taken
    step()
    assert step.__self__.taken == before + 1


def test_a_method_of_a_class_lacks_its_object():
    with pytest.raises(ValueError, match="takes arguments"):
        function_of("called_functions:Stepper.step")


def test_counts_are_those_of_the_call(tmp_path):
    schedule = small.schedule([40] * 4)
    axes = {"workload": ["small"], "engine": ["called_functions:keeps"], "batch_size": [4]}
    (cell,) = cross(axes, {"small": schedule}, {"small": ""}).cells
    found = run_trial(small.trial(schedule, tmp_path, cell, mode="opcodes"), lambda word: None)
    assert found.metrics["tracked_allocations_per_step"] == pytest.approx(4, abs=0.5)
    found = run_trial(small.trial(schedule, tmp_path, cell, mode="leaks"), lambda word: None)
    assert found.metrics["leaked_objects_per_step"] == pytest.approx(4, abs=0.5)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("called_functions", "must be package.module:function"),
        ("no_such_module:f", "there is no module no_such_module"),
        ("broken_module:f", "broken_module cannot be imported: ZeroDivisionError"),
        ("called_functions:quik", "there is no quik; did you mean quick"),
        ("called_functions:number", "is int and cannot be called"),
        ("called_functions:takes", r"takes arguments \(a\); name a function"),
        ("called_functions:waits", "only makes a coroutine"),
        ("called_functions:makes", "only makes a coroutine"),
        ("called_functions:yields", "only makes a generator"),
        ("called_functions:raises", "raises KeyError: 'k'"),
        ("called_functions:prints", "prints, which would be timed"),
        ("called_functions:exits", r"exits \(3\)"),
        ("called_functions:ends", "ended its process with status 4"),
        ("called_functions:sleeps", r"a call takes 1\.\d s, and many are needed"),
        ("called_functions:Needs", "cannot be made without arguments"),
    ],
)
def test_what_cannot_be_called_again_and_again_is_refused_in_a_sentence(target, words, capsys):
    with pytest.raises(ValueError, match=words) as refused:
        call_seconds(target)
    assert str(refused.value).startswith(f"{target}: ")
    if target.endswith(":quik"):
        assert main(["compare", "--call", target]) == 2
        assert capsys.readouterr().err == f"gcbench: {refused.value}\n"


def test_an_empty_function_takes_less_than_a_microsecond_or_so():
    assert 0 < call_seconds("called_functions:quick") < 1e-3


@pytest.mark.parametrize("flag", ["--device modelled", "--worker process"])
def test_what_a_call_has_none_of_is_refused(flag, capsys):
    command = ["compare", "--call", "called_functions:quick", *flag.split()]
    assert main(command) == 2
    assert "leave it out" in capsys.readouterr().err
