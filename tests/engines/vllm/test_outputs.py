"""Objects of the front end become columns, and a request's deltas its tokens."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.protocol import FinishReason
from engines.vllm.outputs import Outputs

NAMES = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "abort": FinishReason.ABORT}


def request_output(index: int, token_ids: list[int], reason: str | None = None, **text: str):
    completion = SimpleNamespace(token_ids=token_ids, finish_reason=reason, **text)
    return SimpleNamespace(request_id=str(index), outputs=[completion], finished=bool(reason))


@given(st.randoms(use_true_random=False))
def test_columns_and_tokens_are_those_of_a_plain_loop(random):
    outputs = Outputs(has_text=False)
    wanted: dict[int, list[int]] = {}
    running: set[int] = set()
    for step in range(random.randint(1, 8)):
        for index in random.sample(range(step * 10, step * 10 + 10), k=random.randint(0, 5)):
            outputs.admit(index)
            wanted[index] = []
            running.add(index)
        made, ended = [], []
        for index in random.sample(sorted(running), k=random.randint(0, len(running))):
            tokens = [random.randrange(50272) for _ in range(random.randint(0, 4))]
            reason = random.choice([None, None, *NAMES])
            wanted[index] += tokens
            made.append(request_output(index, tokens, reason))
            if reason:
                ended.append((index, NAMES[reason]))
                running.remove(index)
        output = outputs.take(made, 7, device_ns=step, late_ns=1, device_seconds=0.5)
        (taken,) = output.delivered
        rows = [(int(each.request_id), len(each.outputs[0].token_ids)) for each in made]
        columns = zip(taken.request_index.tolist(), taken.num_tokens.tolist(), strict=True)
        assert list(columns) == rows
        assert list(zip(taken.finished.tolist(), taken.finish_reasons, strict=True)) == ended
        assert taken.outputs == made
        assert (output.device_ns, output.late_ns, output.device_seconds) == (step, 1, 0.5)
        dtypes = [
            column.dtype
            for column in (
                taken.request_index,
                taken.num_tokens,
                taken.finished,
                taken.finish_reasons,
            )
        ]
        assert dtypes == [np.int64, np.int32, np.int64, np.int8]
    for index, tokens in wanted.items():
        popped = outputs.pop(index)
        assert popped.dtype == np.int32
        assert popped.tolist() == tokens


def test_what_was_read_is_forgotten():
    outputs = Outputs(has_text=False)
    outputs.admit(3)
    outputs.take([request_output(3, [7, 8], "length")], 0)
    assert outputs.pop(3).tolist() == [7, 8]
    with pytest.raises(KeyError):
        outputs.pop(3)


def test_texts_are_joined_and_forgotten_with_the_tokens():
    outputs = Outputs(has_text=True)
    for index in (3, 4):
        outputs.admit(index)
    outputs.take([request_output(3, [7], text="a"), request_output(4, [7], text="")], 0)
    outputs.take([request_output(3, [8], "stop", text="b")], 0)
    assert [outputs.text(3), outputs.text(4)] == ["ab", ""]
    outputs.pop(3)
    assert outputs.text(3) == ""


def test_a_reason_that_is_not_known_is_named_with_its_request():
    outputs = Outputs(has_text=False)
    outputs.admit(3)
    with pytest.raises(ValueError, match="request 3 with 'error'; expected stop, length, abort"):
        outputs.take([request_output(3, [7], "error")], 0)


@given(st.randoms(use_true_random=False), st.integers(2, 4))
def test_of_several_samples_the_first_is_the_requests_and_the_last_ends_it(random, num_samples):
    outputs = Outputs(has_text=True, has_samples=True)
    outputs.admit(3)
    lengths = [random.randint(1, 5) for _ in range(num_samples)]
    begins = [random.randint(0, 3) for _ in range(num_samples)]
    ended, wanted = [], []
    for step in range(max(map(sum, zip(lengths, begins, strict=True)))):
        made = []
        for index, (begin, length) in enumerate(zip(begins, lengths, strict=True)):
            if begin <= step < begin + length:
                token = random.randrange(100)
                wanted += [token] * (index == 0)
                each = request_output(3, [token], "length", text=str(token))
                each.outputs[0].index = index
                each.finished = False
                made.append(each)
        random.shuffle(made)
        if made and step + 1 == max(map(sum, zip(lengths, begins, strict=True))):
            made[-1].finished = True
        (taken,) = outputs.take(made, 0, device_ns=0, late_ns=0, device_seconds=0.0).delivered
        assert len(taken.request_index) == bool(made)
        ended += taken.finished.tolist()
    assert ended == [3]
    assert outputs.text(3) == "".join(map(str, wanted))
    assert outputs.pop(3).tolist() == wanted
