"""Calls into other processes, which are real ones, of vLLM's names."""

import multiprocessing
import os
import pickle
from collections.abc import Callable
from multiprocessing import resource_tracker
from multiprocessing.connection import Client, Listener
from pathlib import Path
from threading import Event
from typing import NamedTuple

import control_calls as calls
import pytest
from processes import HANG_SECONDS

from engines.private_folder import private_folder
from engines.protocol import EngineDeadError
from engines.vllm import control as module
from engines.vllm.control import Control
from engines.vllm.host_process import HERE
from engines.vllm.plugin import general
from engines.vllm.settings import CONTROL_VARIABLE, HOST_PATH_VARIABLE

ENGINE, WORKER = "EngineCore_DP0", "VllmWorker-0"


class Child(NamedTuple):
    process: multiprocessing.Process
    gate: object

    def report(self) -> None:
        self.gate.send("report")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


Start = Callable[..., list[Child]]


@pytest.fixture
def control():
    folder = private_folder("test")  # a socket's path has room for 107 bytes
    control = Control(folder)
    yield control
    control.close()
    Path(folder).rmdir()


@pytest.fixture
def start(control, monkeypatch) -> Start:
    """Start processes of these names; they report when they are told to."""
    monkeypatch.delenv(HOST_PATH_VARIABLE, raising=False)
    context = multiprocessing.get_context("spawn")
    children = []

    def start(*names: str) -> list[Child]:
        for name in names:
            gate, other = context.Pipe()
            process = context.Process(target=calls.serve, args=(other,), name=name)
            process.start()
            other.close()
            children.append(Child(process, gate))
        return children[-len(names) :]

    yield start
    for child in children:
        child.gate.close()
    control.close()
    for child in children:
        child.process.join(timeout=HANG_SECONDS)
        assert child.process.exitcode is not None, "a child outlived its trial"
        child.process.close()
    resource_tracker._resource_tracker._stop()  # it came with the first child and would stay


def connected(control: Control, start: Start, *names: str) -> list[Child]:
    children = start(*names)
    for child in children:
        child.report()
    control.wait_for(["engine" if name == ENGINE else "worker" for name in names])
    return children


def test_calls_go_to_the_engine_then_to_the_worker_whoever_reported_first(control, start):
    worker, engine = start(WORKER, ENGINE)
    worker.report()
    control.wait_for(["worker"])
    engine.report()
    control.wait_for(["engine", "worker"])
    assert control.rpc(calls.describe, (1, "two")) == [
        ("engine", engine.process.pid, (1, "two")),
        ("worker", worker.process.pid, (1, "two")),
    ]
    assert control.ended() == ""


def test_many_that_report_at_one_moment_are_all_heard(control, start):
    children = connected(control, start, *[WORKER] * 5)
    pids = [pid for _, pid, _ in control.rpc(calls.describe, ())]
    assert sorted(pids) == sorted(child.process.pid for child in children)


def test_what_is_raised_there_is_raised_here_and_the_next_call_goes_through(control, start):
    connected(control, start, ENGINE, WORKER)
    for role in ("engine", "worker"):
        with pytest.raises(LookupError) as raised:
            control.rpc(calls.fail, (role,))
        assert raised.value.args == ("no such weight", role)
        assert len(control.rpc(calls.describe, ())) == 2


@pytest.mark.parametrize(
    "function", [calls.answer_what_cannot_cross, calls.fail_with_what_cannot_cross]
)
def test_what_cannot_be_pickled_is_told_and_the_next_call_goes_through(control, start, function):
    connected(control, start, ENGINE)
    with pytest.raises(TypeError, match="cannot cross to the trial"):
        control.rpc(function, ())
    assert len(control.rpc(calls.describe, ())) == 1


@pytest.mark.parametrize(("name", "role"), [(ENGINE, "engine"), (WORKER, "worker")])
def test_a_process_that_was_killed_is_named(control, start, name, role):
    children = dict(zip((ENGINE, WORKER), connected(control, start, ENGINE, WORKER), strict=True))
    has_ended = Event()
    control.when_ended(role, has_ended.set)
    control.rpc(calls.describe, ())  # an answer is no end
    assert not has_ended.is_set()
    children[name].kill()
    assert has_ended.wait(timeout=HANG_SECONDS)
    assert control.ended() == f"vLLM's {role} process has ended"
    with pytest.raises(EngineDeadError, match=f"vLLM's {role} process has ended"):
        control.rpc(calls.describe, ())


def test_both_are_named_where_both_have_ended(control, start):
    for child in connected(control, start, ENGINE, WORKER):
        child.kill()
    assert control.ended() == "vLLM's engine and worker process have ended"


def test_one_that_never_reports_is_not_waited_for_for_ever(control, start, monkeypatch):
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.1)
    with pytest.raises(EngineDeadError, match="only these reported: none"):
        control.wait_for(["engine", "worker"])
    monkeypatch.setattr(module, "REPORT_SECONDS", 30)
    connected(control, start, ENGINE)
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.1)
    with pytest.raises(EngineDeadError, match="only these reported: engine; its plug-in"):
        control.wait_for(["engine", "worker"])


def test_one_that_ends_while_it_reports_is_told(control):
    Client(os.environ[CONTROL_VARIABLE], family="AF_UNIX").close()
    with pytest.raises(EngineDeadError, match="ended while it reported"):
        control.wait_for(["engine"])


class Marks:
    """Leaves a mark where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


def test_nothing_is_unpickled_of_who_has_no_key(control, start, tmp_path):
    """One that speaks out of turn, and one that has another key; those of vLLM are heard."""
    strangers = [Client(os.environ[CONTROL_VARIABLE], family="AF_UNIX") for _ in range(2)]
    for stranger in strangers:
        stranger.send_bytes(pickle.dumps(Marks(tmp_path / "ran")))
    child = connected(control, start, ENGINE)[0]
    assert control.rpc(calls.describe, ()) == [("engine", child.process.pid, ())]
    for stranger in strangers:
        assert stranger.recv_bytes().startswith(b"#CHALLENGE#")
        assert stranger.recv_bytes() == b"#FAILURE#"
        stranger.close()
    assert not (tmp_path / "ran").exists()


def test_a_process_of_vllm_unpickles_nothing_of_who_has_no_key(tmp_path, monkeypatch):
    folder = private_folder("test")
    monkeypatch.setattr(HERE, "role", HERE.role)
    monkeypatch.setenv(CONTROL_VARIABLE, f"{folder}/control")
    with Listener(os.environ[CONTROL_VARIABLE], family="AF_UNIX") as stranger:
        module.answer(os.environ[CONTROL_VARIABLE])
        with stranger.accept() as connection:
            connection.send_bytes(pickle.dumps(Marks(tmp_path / "ran")))
            with pytest.raises(EOFError):
                connection.recv_bytes()
    Path(folder).rmdir()
    assert not (tmp_path / "ran").exists()


def test_nothing_is_left_of_it(control, start):
    path = os.environ[CONTROL_VARIABLE]
    connected(control, start, ENGINE)
    control.close()
    assert CONTROL_VARIABLE not in os.environ
    assert not Path(path).exists()
    assert control.rpc(calls.describe, ()) == []
    control.close()


def test_the_trials_own_process_does_not_report_to_itself(control, monkeypatch):
    monkeypatch.delenv(HOST_PATH_VARIABLE, raising=False)
    general()
    monkeypatch.setattr(module, "REPORT_SECONDS", 0.05)
    with pytest.raises(EngineDeadError, match="reported: none"):
        control.wait_for(["engine"])
