"""Stop strings: the first to be completed, at the token that completes it, never shown in part."""

from random import Random

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from engines.builtin.text.row_bytes import RowBytes
from engines.builtin.text.running_text import TextUntilStop
from engines.builtin.text.stop_patterns import StopPatterns
from engines.builtin.text.stop_strings import check_stop, find_stop
from engines.protocol import FinishReason, SamplingParams

PIECES = ["a", "b", "ab", "ba", "aab", "é", "日", "", "b日a"]
texts = st.text("abé日", max_size=12)
stops = st.lists(st.text("abé日", min_size=1, max_size=4), min_size=1, max_size=3).map(tuple)


class Letters:
    """A detokenizer whose token ``i`` is the ``i``-th piece."""

    needs_objects = True
    is_final = True
    num_ids = len(PIECES)
    exact = True

    def stream(self):
        return self

    def step(self, token_id: int) -> str:
        return PIECES[token_id]

    def decode(self, token_ids) -> str:
        return "".join(PIECES[i] for i in token_ids)


def first_stop(text: str, begin: int, stop: tuple[str, ...]):
    """Begin and end of the stop string that ends first behind ``begin``, by trying every place."""
    for end in range(begin + 1, len(text) + 1):
        for each in stop:
            if text[:end].endswith(each):
                return end - len(each), end
    return None


@examples(500)
@given(texts, st.integers(0, 12), stops)
def test_the_stop_string_that_ends_first_is_found(text, num_new, stop):
    num_new = min(num_new, len(text))
    expected = first_stop(text, len(text) - num_new, stop)
    assert find_stop(text, num_new, stop) == expected
    encoded = tuple(each.encode() for each in stop)
    begin = len(text[: len(text) - num_new].encode())
    found = find_stop(text.encode(), len(text.encode()) - begin, encoded)
    if expected is None:
        assert found is None
    else:
        assert found == tuple(len(text[:at].encode()) for at in expected)


@examples(500)
@given(
    st.lists(st.lists(st.integers(0, len(PIECES) - 1), max_size=4), max_size=10),
    stops,
    st.booleans(),
    st.integers(0, 8),
)
def test_a_text_ends_at_its_first_stop_string_and_shows_none_of_it(
    steps, stop, includes_stop, min_tokens
):
    token_ids = [token for tokens in steps for token in tokens]
    params = SamplingParams(1000, min_tokens, stop=stop, include_stop_str_in_output=includes_stop)
    expected, num_expected = Letters().decode(token_ids), len(token_ids)
    reason = None
    for count in range(min_tokens + 1, len(token_ids) + 1):
        text, before = (Letters().decode(token_ids[:n]) for n in (count, count - 1))
        if found := first_stop(text, len(before), stop):
            expected, num_expected = text[: found[includes_stop]], count
            reason = FinishReason.STOP
            break
    running = TextUntilStop(Letters(), params)
    shown, pieces = "", []
    for nth, tokens in enumerate(steps, 1):
        last = FinishReason.LENGTH if nth == len(steps) else None
        pieces.append(running.take(list(tokens), last))
        shown += pieces[-1]
        assert expected.startswith(shown), "part of a stop string was shown"
        if running.num_kept:
            break
    assert bool(running.num_kept) == (reason is not None)
    assert running.num_tokens == num_expected
    assert running.text == expected
    assert shown == expected or not steps


def test_a_stop_string_that_is_the_whole_output_leaves_no_text():
    running = TextUntilStop(Letters(), SamplingParams(9, stop=("ab",)))
    for token in (0, 1):
        assert running.take(token, None) == ""
    assert (running.num_kept, running.text, running.num_tokens) == (1, "", 2)


def test_tokens_of_the_step_behind_the_one_that_completed_it_are_dropped():
    running = TextUntilStop(Letters(), SamplingParams(9, stop=("ba",)))
    assert running.take([0, 1, 4, 5], FinishReason.LENGTH) == "a"
    assert (running.num_kept, running.text, running.num_tokens) == (3, "a", 3)


@pytest.mark.parametrize(
    ("stop", "has_text", "words"),
    [
        (("x",), False, r"request 7: stop strings .*; choose decode_stream or byte_table$"),
        (("x", ""), True, r"request 7: a stop string of length 0; leave it out$"),
        (("�x",), True, r"request 7: a stop string with U\+FFFD.*; leave it out$"),
    ],
)
def test_what_can_never_be_found_is_refused_in_a_sentence(stop, has_text, words):
    with pytest.raises(ValueError, match=words):
        check_stop(7, SamplingParams(9, stop=stop), has_text)
    check_stop(7, SamplingParams(9), has_text)


@examples(200)
@given(st.integers(0, 2**32).map(Random))
def test_the_search_of_all_rows_misses_none(random):
    """Against a search of each; bytes that are no UTF-8 lie between the characters."""
    letters = ["a", "b", "é", "日"]
    junk = [b"\xff", b"\xfe", b"\x80", b"\xc3", b"", *map(str.encode, letters)]
    num_rows = 5
    text, patterns = RowBytes(num_rows), StopPatterns(num_rows)
    contents = [b""] * num_rows
    stop = [
        tuple("".join(random.choices(letters, k=random.randint(1, 3))) for _ in range(count))
        for count in random.choices(range(4), k=num_rows)
    ]
    for row in range(num_rows):
        patterns.put(row, tuple(each.encode() for each in stop[row]))
    for _ in range(6):
        rows = np.array(random.sample(range(num_rows), 3), np.int32)
        new = [b"".join(random.choices(junk, k=random.randint(0, 5))) for _ in rows]
        data = np.frombuffer(b"".join(new), np.uint8)
        counts = np.array([len(each) for each in new], np.int64)
        text.append(rows, data, counts)
        found = patterns.candidates(rows, text, data, counts)
        for row, added, is_candidate in zip(rows.tolist(), new, found.tolist(), strict=True):
            contents[row] += added
            assert text.read(row) == contents[row]
            encoded = tuple(each.encode() for each in stop[row])
            found_here = find_stop(contents[row], len(added), encoded)
            assert is_candidate or not found_here
            assert found_here or not is_candidate or 0xFE in added, "too many to look at"


@examples(100)
@given(st.lists(st.binary(max_size=700), min_size=1, max_size=4))
def test_rows_of_bytes_can_be_read_from_their_ends(contents):
    text = RowBytes(len(contents))
    for row, content in enumerate(contents):
        text.write(row, b"something longer that was there before")
        text.write(row, content)
    tails = text.tails(np.arange(len(contents), dtype=np.int32))
    assert [tail.tobytes() for tail in tails] == [each[-4:].rjust(4, b"\0") for each in contents]
    assert [text.read(row) for row in range(len(contents))] == contents
