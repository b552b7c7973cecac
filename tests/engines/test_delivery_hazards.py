"""Where text, preemptions and ends meet, one request at a time and one byte a token."""

import numpy as np
import pytest
from delivery_runs import Way, config_of

from engines.builtin.delivery.stage import Processed
from engines.builtin.representations import PLACEHOLDER_TOKEN_ID
from engines.builtin.request_table import Request
from engines.builtin.text.byte_table import ByteTable
from engines.protocol import FinishReason, Int32Array, SamplingParams

WAYS = [
    ("per_request", "list_of_lists", "decode_stream"),
    ("per_request", "int_or_list", "byte_table"),
    ("columnar", "flat_arrays", "byte_table"),
]
every_way = pytest.mark.parametrize("way", WAYS, ids="-".join)
PIECES = ByteTable("", 8192).pieces
EOS = 0


def tokens_of(data: str | bytes) -> list[int]:
    """A token a byte."""
    data = data.encode() if isinstance(data, str) else data
    return [PIECES.index(bytes([byte])) for byte in data]


class One:
    """A request on its way through a delivery."""

    def __init__(self, way, max_tokens: int = 50, stop: tuple[str, ...] = (), **params) -> None:
        delivery, representation, detokenizer = way
        config = config_of(
            delivery=delivery,
            representation=representation,
            detokenizer=detokenizer,
            vocab_size=8192,
            eos_token_id=EOS,
            max_num_seqs=16,
            request_streams="collector",
        )
        self.way = Way(config)
        asked = SamplingParams(max_tokens, stop=stop, **params)
        self.request = Request(4, np.zeros(2, np.int32), asked)
        self.shown = ""
        self.reason: FinishReason | None = None
        self.tokens: list[int] = []
        self.text = ""
        self.row = self.way.admit(self.request)
        self._others = 5

    def give(self, data: str | bytes | list[int]) -> FinishReason | None:
        """One step with these tokens; why the request ended, if it did."""
        tokens = data if isinstance(data, list) else tokens_of(data)
        host = np.full((1, max(len(tokens), 1)), PLACEHOLDER_TOKEN_ID, np.int32)
        host[0, : len(tokens)] = tokens
        self.step(host, len(tokens))
        return self.reason

    def step(self, host: Int32Array, count: int) -> Processed:
        """As many tokens as that."""
        sampled = self.way.representation.from_device(host, np.array([count], np.int32))
        processed = self.way.step(np.array([self.row], np.int32), sampled)
        self.shown += "".join(output.outputs[0].text for output in processed.outputs)
        if len(processed.finished):
            (ended,) = processed.ended
            self.reason = FinishReason(processed.reasons[0])
            self.tokens = self.way.retire(self.row, ended.num_tokens)
            text = ended.text
            self.text = text.decode(errors="replace") if isinstance(text, bytes) else text
        return processed

    def preempt(self) -> None:
        """Another request has the row for a while, and writes over it."""
        self.way.preempt(self.row, self.request)
        asked = SamplingParams(50, stop=("x",))
        other = Request(self._others, np.zeros(2, np.int32), asked)
        self._others += 1
        assert self.way.admit(other) == self.row
        rows = np.array([self.row], np.int32)
        host = np.array([tokens_of("äöü")], np.int32)
        self.way.step(rows, self.way.representation.from_device(host, np.array([6], np.int32)))
        row, self.row = self.row, self.way.admit(self.request)
        assert self.row != row


@every_way
def test_ended_within_a_character(way):
    one = One(way, max_tokens=2)
    assert one.give(b"a\xc3") is FinishReason.LENGTH
    assert one.text == "a�"
    assert one.tokens == tokens_of(b"a\xc3")


@every_way
def test_preempted_within_a_character(way):
    one = One(way, max_tokens=6)
    for byte in "é日x".encode():
        one.give(bytes([byte]))
        if not one.reason:
            one.preempt()
    assert (one.reason, one.text) == (FinishReason.LENGTH, "é日x")
    assert one.shown == one.text


@every_way
@pytest.mark.parametrize("includes_stop", [False, True])
def test_a_stop_string_that_spans_a_preemption(way, includes_stop):
    one = One(way, stop=("日p",), include_stop_str_in_output=includes_stop)
    one.give(b"to" + "日".encode()[:2])
    one.preempt()
    assert one.give("日".encode()[2:]) is None
    one.preempt()
    assert one.give("ped") is FinishReason.STOP
    assert one.text == "to" + "日p" * includes_stop
    assert one.tokens == tokens_of("to日p")
    assert one.shown == one.text


@every_way
def test_a_stop_string_that_is_the_whole_output(way):
    one = One(way, stop=("stop",))
    assert one.give("stop") is FinishReason.STOP
    assert (one.text, one.tokens, one.shown) == ("", tokens_of("stop"), "")


@every_way
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (("abcd", "bc"), "xa"),  # the one that ends first, though it begins later
        (("bc", "abc"), "xa"),  # of two that end together the first named
        (("abc", "bc"), "x"),
        (("cde", "b"), "xa"),
    ],
)
def test_overlapping_stop_strings(way, at_once, stop, text):
    one = One(way, stop=stop)
    for part in ["xabcdef"] if at_once else list("xabcdef"):
        if one.give(part) is not None:
            break
    assert (one.reason, one.text) == (FinishReason.STOP, text)
    assert one.tokens == tokens_of("xab" if text == "xa" and "b" in stop else "xabc")


@every_way
def test_steps_without_tokens(way):
    one = One(way, max_tokens=4, stop=("bé",))
    for part in (b"", b"a", b"", b"b\xc3", b"", b"\xa9", b""):
        if one.give(part) is not None:
            break
    assert (one.reason, one.text, len(one.tokens)) == (FinishReason.STOP, "a", 4)


@every_way
def test_a_stop_string_in_the_middle_of_a_step_comes_before_its_other_ends(way):
    for params in ({"max_tokens": 6}, {"ignore_eos": False}, {"stop_token_ids": (EOS,)}):
        one = One(way, stop=("st",), **params)
        assert one.give([*tokens_of("a stop"), EOS]) is FinishReason.STOP
        assert (one.text, one.tokens) == ("a ", tokens_of("a st"))


@every_way
def test_before_min_tokens_nothing_but_the_length_stops(way):
    one = One(way, max_tokens=8, stop=("s", "x"), min_tokens=4, ignore_eos=False)
    assert one.give([*tokens_of("ss"), EOS, *tokens_of("s")]) is None
    assert one.give("a") is None, "what came before min_tokens is not looked at again"
    assert one.give([EOS]) is FinishReason.STOP
    assert (one.text, len(one.tokens)) == ("sssa", 6)
    one = One(way, max_tokens=3, stop=("s",), min_tokens=3)
    assert one.give("sss") is FinishReason.LENGTH
    assert one.text == "sss"


@every_way
@pytest.mark.parametrize("includes_stop", [False, True])
def test_the_token_that_stops_has_no_text_unless_asked_for(way, includes_stop):
    stops = tuple(tokens_of("!"))
    one = One(way, stop_token_ids=stops, include_stop_str_in_output=includes_stop)
    assert one.give("a b!c") is FinishReason.STOP
    assert one.text == "a b" + "!" * includes_stop
    assert one.tokens == tokens_of("a b!")


@every_way
def test_a_stop_string_in_text_that_was_withheld_to_the_end(way):
    """The step's text ends in half a character, so nothing of it was shown before the end."""
    token, stop = next(
        (i, chr(piece[0]))
        for i, piece in enumerate(PIECES)
        if len(piece) > 1 and piece[0] < 0x80 and piece.decode(errors="replace").endswith("�")
    )
    assert stop not in "ab"
    one = One(way, max_tokens=2, stop=(stop,))
    assert one.give([*tokens_of("a"), token]) is FinishReason.STOP
    assert (one.text, len(one.tokens)) == ("a", 2)
    one = One(way, max_tokens=5, stop=(stop,))
    assert one.give([*tokens_of("a"), token]) is None, "withheld, so not yet looked at"
    assert one.give("b") is FinishReason.STOP
    assert (one.text, len(one.tokens)) == ("a", 3)


@every_way
def test_special_tokens_have_no_text(way):
    one = One(way, max_tokens=4)
    one.give([EOS, *tokens_of("a"), EOS, *tokens_of("b")])
    assert one.text == "ab"


def test_outputs_can_be_cut_and_cleared_and_the_text_still_ends_right():
    """What a consumer does to its lists is nothing to the text that is decoded at the end."""
    one = One(WAYS[0], max_tokens=4)
    host = np.array([tokens_of(b"ab\xc3")], np.int32)
    one.step(host, 3).outputs[0].outputs[0].token_ids.clear()
    assert one.give(b"\xff") is FinishReason.LENGTH
    assert one.text == "ab��"


@every_way
@pytest.mark.parametrize("at_once", [False, True])
def test_what_a_stop_string_may_begin_is_withheld_by_characters(way, at_once):
    """Those that are no UTF-8 count as well: a U+FFFD for one byte or for three."""
    one = One(way, stop=("zzzz",))
    shown = {b"\xffa\xe6\x97b": "�", b"c": "�a", b"\xf0\x9f": "�a", b"d": "�a�b"}
    for data, so_far in shown.items():
        for part in [data] if at_once else [bytes([byte]) for byte in data]:
            assert one.give(part) is None
        assert one.shown == so_far
    assert one.give("zzzz") is FinishReason.STOP
    assert one.shown == one.text == "�a�bc�d"
