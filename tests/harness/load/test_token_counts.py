"""Who says how many tokens answers have, and what is said where nobody does or two disagree."""

import msgspec
import numpy as np
import pytest
from runs import load
from scripted_server import ScriptedServer
from test_validity import MS, broken, health, observed

from engines.openai.outcome import Outcome
from engines.openai.response import UNKNOWN_COUNT, CountSource
from engines.vocabulary import SHIPPED_TOKENIZER, load_tokenizer
from harness.load.measure import Wanted, measure
from harness.load.token_counts import with_tokenizer

TEXT = "the answer is thé 日本"


def changed(seen, **columns):
    return seen._replace(responses=seen.responses._replace(**columns))


def uncounted(count=10):
    """Answers of two events each, of whose tokens nobody says anything."""
    seen = observed(count)
    return changed(
        seen,
        num_tokens=np.full(count, UNKNOWN_COUNT, np.int64),
        counted_by=np.full(count, CountSource.UNKNOWN, np.int8),
        usage_tokens=np.full(count, UNKNOWN_COUNT, np.int64),
        text=np.frombuffer(TEXT.encode() * count, np.uint8),
        num_text=np.full(count, len(TEXT.encode()), np.int64),
    )


def notes(seen):
    return " ".join(measure(seen, "small", 0, Wanted()).notes)


def test_without_a_count_what_needs_one_is_unknown_and_nothing_else():
    result = measure(uncounted(), "small", 0, Wanted())
    assert result.counted_by == {"unknown": 10}
    assert result.is_valid
    known = {name for name, value in result.trial.metrics.items() if value is not None}
    assert {"ttft_median", "e2el_median", "itl_median", "request_throughput"} <= known
    assert known.isdisjoint({"output_throughput", "tpot_mean", "tpot_median"})
    assert "10 of 10 answers say nothing of their number of tokens" in notes(uncounted())
    assert "--tokenizer FILE" in notes(uncounted())


def test_one_answer_without_a_count_leaves_no_throughput_of_tokens():
    seen = observed(10)
    tokens, by = seen.responses.num_tokens.copy(), seen.responses.counted_by.copy()
    tokens[3], by[3] = UNKNOWN_COUNT, CountSource.UNKNOWN
    result = measure(changed(seen, num_tokens=tokens, counted_by=by), "small", 0, Wanted())
    assert result.counted_by == {"unknown": 1, "usage": 9}
    assert result.trial.metrics["output_throughput"] is None
    assert result.trial.metrics["tpot_median"] == pytest.approx(0.03)


def test_a_tokenizer_counts_what_nobody_counts_and_nothing_else():
    expected = len(load_tokenizer("").encode(TEXT, add_special_tokens=False).ids)
    counted = with_tokenizer(uncounted().responses, str(SHIPPED_TOKENIZER))
    assert counted.num_tokens.tolist() == [expected] * 10
    assert set(counted.counted_by) == {CountSource.TOKENIZER}
    by_usage = observed(10).responses
    kept = with_tokenizer(by_usage, str(SHIPPED_TOKENIZER))
    assert kept.num_tokens.tolist() == by_usage.num_tokens.tolist()


def test_no_tokenizer_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="--tokenizer"):
        with_tokenizer(uncounted().responses, str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"usage_tokens": [9] * 10, "num_ids": [2] * 10}, "(one: 2 ids, usage 9)"),
        ({"usage_tokens": [0] * 10}, "usage is not believed"),
        ({"num_tokens": [1] * 10}, "(one: 2 events, usage 1)"),
        ({"num_tokens": [7] * 10}, "(one: 7 where 2 were asked)"),
        ({"outcome": [Outcome.CONTEXT_FULL] * 10, "num_tokens": [1] * 10}, "(one: 1 of 2)"),
    ],
)
def test_each_conflict_is_a_note_with_its_numbers(columns, note):
    clean = observed(10)
    arrays = {name: np.array(each, np.int64) for name, each in columns.items()}
    if "num_ids" in columns:
        arrays["token_ids"] = np.zeros(20, np.int32)
    assert note in notes(changed(clean, **arrays))
    assert note not in notes(clean)


def test_an_answer_that_the_context_ended_counts_as_one():
    seen = observed(10, outcomes=[Outcome.CONTEXT_FULL] * 4)
    result = measure(seen, "small", 0, Wanted())
    assert (result.num_completed, result.outcomes) == (10, {"completed": 6, "context_full": 4})


def test_reasoning_is_told_from_the_answer_behind_it():
    seen = observed(10)
    later = changed(seen, first_answer_ns=seen.recording.sent_ns + 31 * MS)
    assert "first token of anything else came after 31 ms" in notes(later).replace("31.0", "31")
    assert "nothing else" in notes(changed(seen, first_answer_ns=np.zeros(10, np.int64)))
    assert "reasoning" not in notes(seen)


def test_events_that_come_together_are_no_fault_of_the_client():
    """Three tokens at two moments: half of the gaps are 0, and a gap is 30 ms all the same."""
    seen = observed(100, clients=[health(lag_p90=0.002)])
    moments = seen.responses.delivered_ns.reshape(-1, 2)
    three = np.stack([moments[:, 0], moments[:, 0], moments[:, 1]], 1).ravel()
    together = changed(seen, delivered_ns=three, num_deliveries=np.full(100, 3, np.int64))
    assert measure(together, "small", 0, Wanted()).trial.metrics["itl_median"] < 0.03
    assert broken(together) == []


@pytest.mark.slow
def test_a_server_that_counts_nothing_is_counted_by_the_tokenizer_that_is_named(tmp_path):
    body = {"return_token_ids": None}
    with ScriptedServer(faults=["uncounted"]) as server:
        asked = {
            "num_requests": 5,
            "output_lens": 3,
            "extra_body": msgspec.json.encode(body).decode(),
        }
        plain = load(server.url, tmp_path, **asked)
        named = load(server.url, tmp_path, **asked, tokenizer=SHIPPED_TOKENIZER)
    assert plain.result.counted_by == {"unknown": 5}
    assert plain.result.trial.metrics["output_throughput"] is None
    assert named.result.counted_by == {"tokenizer": 5}
    assert named.result.trial.metrics["output_throughput"] > 0
