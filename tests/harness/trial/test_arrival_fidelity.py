"""What was sent against what was scheduled, said of requests that come by themselves."""

import msgspec
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from small import CELL, TRIAL_SECONDS, answer, plan, schedule, summary, trial

from harness.experiment.local_executor import LocalExecutor
from harness.experiment.plan import timing_round
from harness.experiment.store import trial_key
from harness.trial.arrival_fidelity import (
    MIN_REQUESTS,
    SentArrivals,
    arrival_words,
    check_delivered,
)
from harness.trial.recorder import RequestStamps
from harness.trial.spec import Trial, TrialResult
from workloads.recipe.arrivals import parse_arrivals

N, RATE = 3_000, 200
OPENED = 5 * 10**14
STEP_NS = 12_000_000
PROCESSES = {"constant": 0.0, "poisson": 1.0, "gamma": 2**0.5}


def arrivals(kind: str, count: int = N, seed: int = 0) -> np.ndarray:
    text = f"{kind}:{RATE}" + (":0.5" if kind == "gamma" else "")
    return parse_arrivals(text).sample(np.random.default_rng(seed), count)


def asked(seconds, **changes):
    return schedule([1] * len(seconds), arrival_seconds=seconds, **changes)


def requests(of, late_ns, queued_ns=0) -> RequestStamps:
    """As they would be recorded if each was sent so late, and then waited for a step's end."""
    due = OPENED + np.rint(of.arrival_seconds * 1e9).astype(np.int64)
    zeros = np.zeros(len(due), np.int64)
    sent = due + late_ns
    return RequestStamps(
        due, sent, sent + queued_ns, zeros, zeros, zeros, np.full(len(due), 1, np.int8)
    )


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("seed", range(3))
def test_a_little_jitter_leaves_arrivals_as_scheduled(kind, seed):
    of = asked(arrivals(kind, seed=seed))
    late = np.random.default_rng(seed).exponential(20_000, N).astype(np.int64)
    sent, metrics = check_delivered(of, requests(of, late, queued_ns=1))
    assert arrival_words(sent).startswith("as scheduled: gaps' CV ")
    expected = PROCESSES[kind]
    assert metrics["arrival_gap_cv"] == pytest.approx(expected, abs=max(0.02, 0.05 * expected))
    assert metrics["send_late_p99"] == pytest.approx(np.percentile(late, 99) / 1e9)


@pytest.mark.parametrize("kind", PROCESSES)
def test_what_goes_out_between_steps_goes_out_in_clumps(kind):
    of = asked(arrivals(kind))
    due = np.rint(of.arrival_seconds * 1e9).astype(np.int64)
    late = -due % STEP_NS
    sent, metrics = check_delivered(of, requests(of, late))
    assert sent.wrong
    assert arrival_words(sent).endswith("requests go out between steps")
    assert metrics["arrival_gap_cv"] > PROCESSES[kind] + 0.05


@pytest.mark.parametrize("kind", PROCESSES)
def test_a_sender_that_was_held_up_is_found_out(kind):
    of = asked(arrivals(kind))
    due = np.rint(of.arrival_seconds * 1e9).astype(np.int64)
    late = np.zeros(N, np.int64)
    for begin in range(10**9, 10**10, 10**9):  # for 0.3 s of each second
        held = (due >= begin) & (due < begin + 3 * 10**8)
        late[held] = begin + 3 * 10**8 - due[held]
    sent, _ = check_delivered(of, requests(of, late, queued_ns=1))
    assert "gaps' CV" in sent.wrong
    assert arrival_words(sent).endswith("the machine was too busy")


def test_what_came_together_did_not_come_as_scheduled():
    of = asked(np.arange(40) / 1e3)
    late = 10**9 - np.arange(40) * 10**6
    sent, metrics = check_delivered(of, requests(of, late))
    assert arrival_words(sent).startswith(
        "not as scheduled: jitter 35.10 where 0.00 was asked for; "
    )
    assert metrics["arrival_gap_cv"] is None


def test_of_a_run_that_ended_before_a_second_moment_nothing_is_said():
    of = asked(np.repeat([0.0, 9.0], 50))
    seen = requests(of, 0)
    seen.sent_ns[50:] = 0
    assert check_delivered(of, seen).sent is None


@pytest.mark.parametrize(
    "changes",
    [
        {"arrival_seconds": np.zeros(N)},
        {"arrival_seconds": np.zeros(N), "max_concurrency": 8},
        {"max_concurrency": 8},
        {"previous_turn": np.arange(N) - 1},
    ],
    ids=["at once", "closed loop", "cap", "turns"],
)
def test_of_requests_that_wait_for_others_nothing_is_said(changes):
    of = schedule([1] * N, **({"arrival_seconds": arrivals("poisson")} | changes))
    sent, metrics = check_delivered(of, requests(of, 0))
    assert sent is None
    assert metrics == {"arrival_gap_cv": None, "send_late_p99": None}


@pytest.mark.parametrize(("count", "is_told"), [(MIN_REQUESTS - 1, False), (MIN_REQUESTS, True)])
def test_of_few_requests_nothing_is_said(count, is_told):
    of = asked(arrivals("poisson"))
    seen = requests(of, 0)
    seen.sent_ns[count:] = 0  # the run ended early
    assert bool(check_delivered(of, seen).sent) == is_told


@examples(60)
@given(
    st.lists(st.integers(0, 40), min_size=MIN_REQUESTS, max_size=400).filter(
        lambda gaps: any(gaps[1:])
    ),
    st.integers(0, 10**9),
    st.integers(0, 10_000),
)
def test_any_schedule_that_is_kept_to_is_called_so(gaps_ms, constant_ns, seed):
    """Requests that come together, as in a trace with whole seconds, too."""
    of = asked(np.cumsum(gaps_ms) / 1e3)
    jitter = np.random.default_rng(seed).integers(0, 1_000, len(gaps_ms))
    sent, metrics = check_delivered(of, requests(of, constant_ns + jitter, queued_ns=1))
    assert sent.wrong == []
    exact = np.diff(of.arrival_seconds)
    assert metrics["arrival_gap_cv"] == pytest.approx(exact.std() / exact.mean(), abs=0.02)


def test_an_experiment_notes_what_did_not_come_as_scheduled():
    cells = [msgspec.structs.replace(CELL, gc=gc) for gc in ("default", "freeze")]
    of, outcomes = plan(cells), {}
    for number in range(1, 8):
        for turn in timing_round(of, number):
            asked_for = Trial(cell=turn.cell, schedule_path="", schedule_sha256="", seed=turn.seed)
            is_wrong = turn.cell.gc == "freeze" and number < 4
            outcome = answer(asked_for, {"host_time_per_step": 1e-3 + number / 1e6})
            sent = SentArrivals(
                asked={"gaps' CV": 1.0},
                found={"gaps' CV": 1.3},
                wrong=["gaps' CV"] * is_wrong,
                late_median=0.001,
                late_max=0.25,
                between_steps=False,
            )
            key = trial_key(turn.round, turn.place, turn.cell, turn.mode)
            outcomes[key] = msgspec.structs.replace(outcome, delivered=sent)
    notes = [note for note in summary(of, outcomes).notes if "scheduled" in note]
    assert notes == [
        "freeze: requests came not as scheduled: gaps' CV 1.30 where 1.00 was asked for; 1.00 ms "
        "late at the median, 250 ms at most: the machine was too busy (3 of 7 trials)."
    ]


@pytest.mark.slow
def test_a_trial_says_how_its_requests_came(tmp_path):
    of = asked(arrivals("poisson", 400))
    rows = [tmp_path / name for name in ("sender.npz", "slices.npz")]
    cell = msgspec.structs.replace(CELL, batch_size=64)
    (result,) = LocalExecutor(TRIAL_SECONDS).run(
        [trial(of, tmp_path, cell, rows_path=str(rows[0]))]
    )
    in_slices = trial(of, tmp_path, cell, rows_path=str(rows[1]), slice_steps=50)
    (sliced,) = LocalExecutor(TRIAL_SECONDS).run([in_slices])
    for outcome, path, is_outside in ((result, rows[0], True), (sliced, rows[1], False)):
        assert isinstance(outcome, TrialResult), outcome.reason
        assert outcome.delivered is not None
        assert outcome.metrics["arrival_gap_cv"] > 0
        with np.load(path) as columns:
            sent, queued = columns["requests.sent_ns"], columns["requests.queued_ns"]
        assert (sent > 0).all()
        assert (queued >= sent).all()
        assert (queued > sent).any() == is_outside
    assert result.tokens_sha256 == sliced.tokens_sha256
