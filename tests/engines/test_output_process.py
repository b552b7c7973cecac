"""Output processing beside the scheduler: one outcome, whoever dies, lags or is aborted."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import psutil
import pytest
import rpc_calls
import zmq
from examples import some
from harness_free import (
    SEVERAL_TOKENS,
    Request,
    are_alike,
    check_against_oracle,
    draw_config,
    draw_requests,
    null_config,
    run,
    variants,
    wishes,
    with_text,
)
from processes import descriptors, has_ended, opened_since, until

from engines.builtin.engine import Engine
from engines.builtin.output_processing.late import MOST_PENDING, LateProcessor
from engines.builtin.output_processing.messages import Begin, Remove, encode, to_process
from engines.builtin.output_processing.thread import Threaded
from engines.protocol import ContradictionError, EngineDeadError, SamplingParams

VARIANTS = list(variants())
LATE = ["thread", "process"]
every_late_mode = pytest.mark.parametrize("mode", LATE)


@pytest.fixture(autouse=True)
def calls_can_be_imported(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")


@pytest.fixture
def engine(mode) -> Iterator[Engine]:
    served = Engine(null_config(output_processing=mode, vocab_size=60, detokenizer="byte_table"))
    yield served
    served.shutdown()


def add(engine: Engine, count: int, max_tokens: int = 40, **params) -> None:
    for index in range(count):
        prompt = np.arange(5, dtype=np.int32)
        engine.add_request(index, prompt, SamplingParams(max_tokens, **params))


def finish(engine: Engine) -> list[int]:
    """Step until all is done; who ended, in order."""
    ended: list[int] = []
    while engine.has_unfinished_requests():
        for delivered in engine.step().delivered:
            ended += delivered.finished.tolist()
    return ended


CHOSEN = list(enumerate(some(VARIANTS)))
QUICK = (0, CHOSEN[-1][0])


@pytest.mark.parametrize(
    ("nth", "variant", "worker"),
    [
        *(
            pytest.param(nth, variant, "in-process", marks=[pytest.mark.slow] * (nth not in QUICK))
            for nth, variant in CHOSEN
        ),
        *(
            pytest.param(nth, variant, "process", marks=pytest.mark.slow)
            for nth, variant in some(CHOSEN)
        ),
    ],
)
def test_an_output_process_changes_nothing(variant, nth, worker):
    """Preemption, priorities, shared prefixes, aborts, ragged steps, stop strings."""
    random = Random(nth)
    config = replace(
        with_text(random, draw_config(random)),
        max_num_seqs=5,
        max_num_batched_tokens=24,
        **SEVERAL_TOKENS[nth % 2],
        block_size=4,
        num_gpu_blocks_override=18,
        enable_prefix_caching=True,
        scheduling_policy="priority",
        representation=variant[0],
        delivery=variant[1],
        detokenizer="byte_table",
        worker=worker,
    )
    here, there = Engine(config), Engine(replace(config, output_processing="process"))
    try:
        for first_index in range(0, 2000, 100):
            requests = draw_requests(random, config, first_index)
            requests = [wishes(random, request) for request in requests]
            assert are_alike(run(there, requests), run(here, requests), "process")
            if first_index >= 200 and there.scheduler_stats()["num_preemptions"]:
                return
        raise AssertionError("nobody was ever preempted")
    finally:
        here.shutdown()
        there.shutdown()


def test_without_text_its_tokens_are_the_oracles():
    random = Random(5)
    config = replace(draw_config(random), output_processing="process")
    engine = Engine(config)
    try:
        for first_index in (0, 100, 200):
            requests = draw_requests(random, config, first_index)
            check_against_oracle(config, requests, run(engine, requests))
    finally:
        engine.shutdown()


@every_late_mode
def test_what_is_sampled_behind_a_stop_is_counted_and_dropped(engine):
    """Every token of this vocabulary has text, so that each request meets its stop string."""
    add(engine, 8, stop=tuple("abcdefghijklmnopqrstuvwxyz0123456789 "))
    ended = finish(engine)
    assert sorted(ended) == list(range(8))
    given = sum(len(engine.output_token_ids(index)) for index in ended)
    assert given < 8 * 40
    assert engine.scheduler_stats()["num_surplus_tokens"] > 0


@every_late_mode
def test_a_number_can_be_used_again_while_its_output_is_under_way(engine):
    fresh = Engine(replace(engine.config, output_processing="inline"))
    for nth in range(20):
        add(engine, 3)
        for _ in range(nth % 7):
            engine.step()
        for index in range(3):
            engine.abort_request(index)
    for each in (engine, fresh):
        add(each, 3)
        assert sorted(finish(each)) == [0, 1, 2]
    for index in range(3):
        assert engine.output_text(index) == fresh.output_text(index)
        assert engine.output_token_ids(index).tolist() == fresh.output_token_ids(index).tolist()


def test_who_lags_behind_makes_the_scheduler_wait(monkeypatch):
    """The thread does nothing before the scheduler waits for it."""
    waited_for, seen = threading.Event(), []
    process, take = LateProcessor.process, Threaded.take

    def held_up(self, step):
        waited_for.wait()
        return process(self, step)

    def noted(self, *, wait):
        seen.append(self.num_pending)
        if wait:
            waited_for.set()
        return take(self, wait=wait)

    monkeypatch.setattr(LateProcessor, "process", held_up)
    monkeypatch.setattr(Threaded, "take", noted)
    engine = Engine(null_config(output_processing="thread"))
    add(engine, 4)
    assert sorted(finish(engine)) == [0, 1, 2, 3]
    assert max(seen) == MOST_PENDING + 1
    engine.shutdown()


def test_what_the_thread_raises_is_raised_where_it_is_waited_for(monkeypatch):
    def broken(self, step):
        raise RuntimeError("out of words")

    monkeypatch.setattr(LateProcessor, "process", broken)
    engine = Engine(null_config(output_processing="thread"))
    add(engine, 2)
    with pytest.raises(RuntimeError, match="out of words"):
        finish(engine)
    engine.shutdown()


@pytest.mark.parametrize("mode", ["thread"])
def test_the_switch_interval_is_set_said_and_put_back(engine):
    assert engine.read_back().found == {"switch_interval_us": 500}
    assert sys.getswitchinterval() == pytest.approx(0.0005)
    other = Engine(null_config(output_processing="thread"))
    engine.shutdown()
    engine.shutdown()
    assert sys.getswitchinterval() == pytest.approx(0.0005)
    other.shutdown()
    gc.collect()  # engines that other tests have left
    assert sys.getswitchinterval() == pytest.approx(0.005)


def output_process(engine: Engine) -> psutil.Process:
    (child,) = (
        each for each in psutil.Process().children() if "process_loop" in " ".join(each.cmdline())
    )
    return child


@pytest.mark.parametrize("mode", ["process"])
@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGKILL, r"was killed by SIGKILL"), (signal.SIGSTOP, r"is stopped; .* SIGSTOP")],
)
def test_one_that_is_killed_or_stopped_ends_the_run_in_a_sentence(engine, number, words):
    add(engine, 3)
    for _ in range(3):
        engine.step()
    output_process(engine).send_signal(number)
    with pytest.raises(EngineDeadError, match=words):
        finish(engine)


@pytest.mark.parametrize("mode", ["process"])
def test_what_is_sent_to_one_that_is_known_to_be_gone_waits_for_no_other(engine):
    add(engine, 3)
    engine.step()
    gc.collect()  # so that it closes nothing of other tests meanwhile
    opened = descriptors()
    output_process(engine).kill()
    # ZeroMQ closes both ways when it hears of it.
    until(lambda: len(opened - descriptors()) >= 2)
    with pytest.raises(EngineDeadError, match="was killed by SIGKILL"):
        finish(engine)


@pytest.mark.parametrize("mode", ["process"])
def test_one_that_dies_of_a_call_is_named(engine):
    with pytest.raises(EngineDeadError, match=r"output process .* was killed by SIGKILL"):
        engine.collective_rpc(rpc_calls.die, "output")


@pytest.mark.parametrize("mode", ["process"])
def test_its_errors_are_told_apart_from_its_refusals(engine):
    with pytest.raises(ValueError, match="nothing to see"):
        engine.collective_rpc(rpc_calls.refuse, "output", "nothing to see")
    add(engine, 2)
    assert sorted(finish(engine)) == [0, 1], "a refusal ends nothing"
    with pytest.raises(EngineDeadError, match="output process failed: LookupError: no such weight"):
        engine.collective_rpc(rpc_calls.fail, "output")


@pytest.mark.parametrize("data", [b"", b"\x93", b"\xc1 none", encode(Remove(3))])
def test_a_message_that_cannot_be_read_ends_the_run_in_a_sentence(monkeypatch, data):
    """Cut off, no msgpack at all, or what only the other end may send."""
    left: list[Path] = []
    monkeypatch.setattr("shutil.rmtree", lambda folder, **_: left.append(Path(folder)))
    engine = Engine(null_config(output_processing="process"))
    try:
        with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
            socket.connect(f"ipc://{left[0]}/outputs")
            socket.send(data)
        # Closed, so it is on its way before what the process itself will say.
        add(engine, 2)
        with pytest.raises(EngineDeadError, match=r"output process .* cannot be read"):
            finish(engine)
    finally:
        engine.shutdown()
        monkeypatch.undo()
        shutil.rmtree(left[0])


@pytest.mark.parametrize("fields", [{}, {"detokenizer": "byte_table", "tokenizer": "/nowhere"}])
def test_nothing_is_left_of_it(tmp_path, monkeypatch, fields):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened = descriptors()
    if fields:
        with pytest.raises(ValueError, match="/nowhere"):
            Engine(null_config(output_processing="process", **fields))
    else:
        engine = Engine(null_config(output_processing="process"))
        add(engine, 2)
        engine.step()
        child = output_process(engine)
        engine.shutdown()
        engine.shutdown()
        assert not child.is_running()
    assert list(tmp_path.iterdir()) == []
    assert not opened_since(opened)


KILLED = """
import os, signal, sys
import psutil
from harness_free import null_config
from engines.builtin.engine import Engine
engine = Engine(null_config(output_processing="process"))
print(*(child.pid for child in psutil.Process().children()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_it_ends_with_an_engine_that_is_killed(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), env["PYTHONPATH"]])
    done = subprocess.run([sys.executable, "-c", KILLED], env=env, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert has_ended(int(done.stdout))
    assert list(tmp_path.iterdir()) == []


def test_a_message_is_the_same_on_the_other_side():
    asked = SamplingParams(7, 2, (3, 4), ("ab", "é"), True, False)
    request = Request(3, 5, 7, (), 0, None)
    prompt = np.arange(request.prompt_length, dtype=np.int32)
    begin = to_process(encode(Begin(2, 9, prompt, asked)))
    assert begin.request().params == asked
    assert begin.request().prompt_token_ids.dtype == np.int32
    assert begin.request().prompt_token_ids.tolist() == prompt.tolist()


def test_streams_do_not_go_with_a_process():
    config = null_config(output_processing="process", request_streams="collector")
    with pytest.raises(ContradictionError) as refused:
        Engine.complete(config)
    assert str(refused.value) == (
        "--axis request-streams=collector with --output-processing process: streams are read "
        "where the "
        "engine is; use inline, overlapped, thread, or --axis request-streams=none"
    )
