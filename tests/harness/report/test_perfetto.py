"""A trace for Perfetto says what a trial stamped: each step, wait, collection and request."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto_reader import compare_with, read_back, top_level
from small import CELL, schedule, trial

from engines.protocol import PHASES
from harness.collector.probe import Events
from harness.experiment.store import RunStore, StoreError, TrialRows, trial_key
from harness.report import perfetto
from harness.report.perfetto import perfetto_trace
from harness.trial.recorder import STEP_COLUMNS, RequestStamps
from harness.trial.run import run_trial

COLLECTION_COLUMNS = (*Events._fields, "process")
LENGTH = st.integers(0, 50)
COUNT = st.integers(0, 1000)


def columns(names, values):
    table = np.array(values, np.int64).reshape(len(values), len(names))
    return {name: table[:, place] for place, name in enumerate(names)}


def trial_rows(requests=(), steps=(), collections=()):
    return TrialRows(
        columns(RequestStamps._fields, requests),
        columns(STEP_COLUMNS, [[step.get(name, 0) for name in STEP_COLUMNS] for step in steps]),
        columns(COLLECTION_COLUMNS, collections),
    )


@st.composite
def stamped(draw):
    """Rows of a trial with two processes that overlap in time as real ones do."""
    now, steps, collections, ends, requests = 1000, [], [], [1000, 1000], []
    for _ in range(draw(st.integers(0, 6))):
        step = {name: (now := now + draw(LENGTH)) for name in ("start", *PHASES)}
        now += 1
        steps.append(step | {"delivered": now, "device_ns": draw(LENGTH), "num_rows": draw(COUNT)})
    for process, generation, wait, length in draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), COUNT, COUNT), max_size=8)
    ):
        start = ends[process] + wait
        ends[process] = start + length
        collections.append([generation, start, length, 5, length // 2, process])
    for wait, first, more in draw(st.lists(st.tuples(COUNT, COUNT, COUNT), max_size=6)):
        queued = 1000 + wait
        moments = (queued + first, queued + first + more) if first else (0, 0)
        requests.append([queued, queued, queued, *moments, 3, wait % 3 if first else -1])
    return trial_rows(requests, steps, collections)


@given(
    stamped(),
    st.sampled_from(
        [
            (["engine", "output"], ["engine", "output"]),
            (["worker", "worker"], ["worker 1", "worker 2"]),
        ]
    ),
)
def test_a_trace_has_each_step_wait_collection_and_request(rows, processes):
    roles, titles = processes
    content = perfetto_trace(rows, roles)
    compare_with(rows, titles, read_back(content))
    assert perfetto_trace(rows, roles) == content


def test_the_facts_of_a_step_a_wait_a_collection_and_a_request():
    stamps = dict(zip(("start", *PHASES, "delivered"), range(100, 170, 10), strict=True))
    step = stamps | {
        "num_rows": 64,
        "device_ns": 4,
        "late_ns": 1,
        "device_length_ns": 9,
        "num_tokens": 70,
        "in_flight": 65,
        "waited_ns": 2,
        "processing_ns": 3,
    }
    rows = trial_rows([[90, 95, 100, 150, 300, 7, 1]], [step], [[2, 112, 3, 17, 2, 0]])
    slices = {each.name: each for each in read_back(perfetto_trace(rows, ["engine"]))}
    assert slices["step"].facts == {
        "step": 0,
        "num_rows": 64,
        "num_tokens": 70,
        "in_flight": 65,
        "waited_ns": 2,
        "processing_ns": 3,
    }
    assert [slices[phase].depth for phase in PHASES] == [1] * len(PHASES)
    assert slices["blocked"][2:] == (
        126,
        130,
        0,
        {"step": 0, "device_ns": 4, "late_ns": 1, "device_length_ns": 9},
    )
    assert slices["generation 2"].track == ("collections in engine", "generation 2")
    assert slices["generation 2"].facts == {"collected": 17, "cpu_ns": 2}
    assert slices["request 0"].facts == {"num_tokens": 7, "ttft_ns": 55, "finish_reason": "LENGTH"}


def test_a_trace_says_which_requests_it_leaves_out(monkeypatch):
    monkeypatch.setattr(perfetto, "MOST_REQUESTS", 2)
    moments = [[30, 35, 36], [10, 0, 0], [20, 25, 26], [5, 40, 41]]
    rows = trial_rows([[1, 1, *each, 1, 1] for each in moments])
    slices = top_level(read_back(perfetto_trace(rows, [])), "requests")
    assert [each.name for each in slices] == ["request 3", "request 2"]
    assert {each.track for each in slices} == {
        ("requests (2 of 4; not shown: 1 later, 1 without a token)",)
    }


@pytest.mark.slow
def test_the_rows_of_a_stored_trial_are_a_trace(tmp_path):
    cell = msgspec.structs.replace(CELL, gc="threshold:50")
    store, key = RunStore(tmp_path, "run"), trial_key(1, 0, cell, "timing")
    store.create()
    with pytest.raises(StoreError, match=r"-requests\.parquet cannot be read"):
        store.load_rows(key)
    asked = trial(schedule([40] * 30), tmp_path, cell, rows_path=str(store.rows_path(key)))
    result = run_trial(asked, lambda word: None)
    store.keep_rows(key)
    rows, roles = store.load_rows(key), [each.role for each in result.processes]
    slices = read_back(perfetto_trace(rows, roles))
    compare_with(rows, roles, slices)
    assert len(top_level(slices, "steps")) == result.metrics["num_steps"] > 100
    assert len(top_level(slices, "requests")) == 30
    (process,) = result.processes
    assert len(top_level(slices, "collections in engine")) == sum(process.collections) > 0
