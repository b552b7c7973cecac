"""What is stamped: compared with a plain list of what each step brought."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, engine, schedule

from engines.protocol import PHASES, Delivered, SamplingParams, StepOutput
from harness.trial.recorder import STEP_COLUMNS, Recorder

NUM_REQUESTS = 5

steps = st.lists(
    st.tuples(
        st.lists(st.integers(1, 10**9), min_size=6, max_size=6).map(sorted),
        st.dictionaries(
            st.integers(0, NUM_REQUESTS - 1), st.tuples(st.integers(1, 4), st.booleans())
        ),
        st.integers(1, 10**6),
    ),
    max_size=30,
)


class Stamped:
    """As much of an engine as a recorder looks at."""

    def __init__(self) -> None:
        self.phase_stamps = [0] * 6


def output_of(rows: dict[int, tuple[int, bool]]) -> StepOutput:
    finished = [index for index, (_, ends) in rows.items() if ends]
    delivered = Delivered(
        np.array(list(rows), np.int64),
        np.array([count for count, _ in rows.values()], np.int32),
        (),
        np.array(finished, np.int64),
        np.full(len(finished), 1, np.int8),
    )
    return StepOutput(
        (delivered,), device_ns=len(rows), late_ns=3 * len(rows), device_seconds=2e-9 * len(rows)
    )


def record(recorder: Recorder, engine, output: StepOutput, now: int, in_flight: int) -> None:
    recorder.step(engine, output, now, in_flight)
    for delivered in output.delivered:
        recorder.delivery(delivered, now)


@given(steps)
def test_it_keeps_what_a_plain_list_would(script):
    recorder, stamped = Recorder(NUM_REQUESTS, 1000), Stamped()
    now = 0
    deliveries: list[list[int]] = [[] for _ in range(NUM_REQUESTS)]
    tokens, reasons = [0] * NUM_REQUESTS, [-1] * NUM_REQUESTS
    gaps: list[int] = []
    for number, (stamps, rows, later) in enumerate(script):
        now += later
        stamped.phase_stamps = stamps
        record(recorder, stamped, output_of(rows), now, 2 * len(rows))
        of_step = [now - deliveries[index][-1] for index in rows if deliveries[index]]
        for index, (count, ends) in rows.items():
            deliveries[index].append(now)
            tokens[index] += count
            reasons[index] = 1 if ends else reasons[index]
        gaps += of_step
        row = dict(zip(STEP_COLUMNS, recorder.steps[number].tolist(), strict=True))
        assert [row[name] for name in ("start", *PHASES)] == stamps
        assert row["delivered"] == now
        assert row["num_rows"] == row["device_ns"] == len(rows)
        assert row["late_ns"] == 3 * len(rows)
        assert row["device_length_ns"] == 2 * len(rows)
        assert row["worst_gap_ns"] == max(of_step, default=0)
        assert row["num_tokens"] == sum(count for count, _ in rows.values())
        assert row["in_flight"] == 2 * len(rows)
    requests = recorder.requests
    assert requests.first_ns.tolist() == [d[0] if d else 0 for d in deliveries]
    assert requests.last_ns.tolist() == [d[-1] if d else 0 for d in deliveries]
    assert requests.num_tokens.tolist() == tokens
    assert requests.finish_reason.tolist() == reasons
    assert sorted(recorder.gaps.tolist()) == sorted(gaps)
    assert recorder.num_steps == len(script)


def test_there_is_room_for_any_number_of_steps():
    recorder, stamped = Recorder(1, 20_000), Stamped()
    for number in range(10_000):
        stamped.phase_stamps = [number] * 6
        record(recorder, stamped, output_of({0: (1, False)}), number + 1, 1)
    assert recorder.steps[:, 0].tolist() == list(range(10_000))
    assert recorder.gaps.tolist() == [1] * 9_999


@pytest.mark.parametrize("representation", ["list_of_lists", "list_of_arrays", "tensor"])
def test_the_engine_s_own_stamps_are_those_of_its_clock(representation):
    import msgspec

    of = schedule([3, 5])
    cell = msgspec.structs.replace(CELL, representation=representation)
    served, recorder = engine(of, cell), Recorder(2, 8)
    ticks = iter(range(1, 1000))
    served.clock = lambda: next(ticks)
    for index in range(2):
        params = SamplingParams(int(of.output_lens[index]))
        served.add_request(index, of.prompt_token_ids(index), params)
    while served.has_unfinished_requests():
        record(recorder, served, served.step(), next(ticks), 2)
    stamps = recorder.steps[:, : len(PHASES) + 1]
    assert (np.diff(stamps, axis=1) > 0).all(), "each phase is stamped after the one before"
    assert (recorder.steps[:, len(PHASES) + 1] > stamps[:, -1]).all()
    assert recorder.requests.num_tokens.tolist() == [3, 5]
    assert recorder.requests.finish_reason.tolist() == [1, 1]
    assert len(recorder.gaps) == 2 + 4
