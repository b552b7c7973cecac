"""Text by any split of any tokens against the tokenizers library's decoding of all at once."""

from functools import lru_cache
from random import Random

import numpy as np
import pytest
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizer_files import BYTEWISE, OTHERS
from tokenizers import Tokenizer

from engines.builtin.text.byte_table import ByteTable
from engines.builtin.text.decode_stream import DecodeStreams
from engines.builtin.text.running_text import RunningText
from engines.builtin.text.utf8 import ends_complete
from engines.protocol import FinishReason, SamplingParams
from engines.vocabulary import tokenizer_path

PARAMS = SamplingParams(max_tokens=1000)
randoms = st.integers(0, 2**32).map(Random)
every_bytewise = pytest.mark.parametrize("name", ["shipped", *BYTEWISE])
both = pytest.mark.parametrize("kind", [DecodeStreams, ByteTable])


class Case:
    """A tokenizer as the library has it, and both detokenizers."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.library = Tokenizer.from_file(str(tokenizer_path(path)))
        self.size = max(self.library.get_vocab(with_added_tokens=True).values()) + 1
        self._odd: list[int] = []

    def decode(self, token_ids: list[int]) -> str:
        return self.library.decode(token_ids, skip_special_tokens=True)

    @lru_cache  # noqa: B019 - a case lives as long as the tests
    def detokenizer(self, kind):
        return kind(self.path, self.size + 3)

    def _find_odd(self) -> list[int]:
        strings = self.detokenizer(ByteTable).strings
        self._odd = [i for i, string in enumerate(strings) if string is None] or [0]
        return self._odd

    def ids(self, random, count: int) -> list[int]:
        """Any tokens, with bytes that are no characters and ids that are no tokens among them."""
        odd = self._odd or self._find_odd()
        return [
            random.choice(odd) if random.random() < 0.5 else random.randrange(self.size + 3)
            for _ in range(count)
        ]


@pytest.fixture(scope="session")
def cases(paths) -> dict[str, Case]:
    return {name: Case(path) for name, path in paths.items()}


def split(random, items: list[int]) -> list[list[int]]:
    """The items in steps of any length, none at all among them."""
    steps = []
    while items:
        count = random.choice([0, 1, 1, 1, 2, 5])
        steps.append(items[:count])
        items = items[count:]
    return steps


def stream(detokenizer, steps: list[list[int]], reason=FinishReason.LENGTH) -> tuple[str, str]:
    """What was shown, piece by piece, and the text in the end."""
    text = RunningText(detokenizer, PARAMS)
    shown = ""
    for nth, tokens in enumerate(steps, 1):
        given_as = tokens[0] if len(tokens) == 1 and nth % 2 else tokens
        shown += text.take(given_as, reason if nth == len(steps) else None)
    return shown, text.text


@every_bytewise
@both
@examples(400)
@given(random=randoms, count=st.integers(0, 40))
def test_any_split_ends_in_the_text_of_all_tokens(cases, name, kind, random, count):
    case = cases[name]
    token_ids = case.ids(random, count)
    detokenizer = case.detokenizer(kind)
    expected = case.decode(token_ids)
    shown, whole = stream(detokenizer, split(random, token_ids))
    assert detokenizer.decode(token_ids) == expected
    assert whole == (expected if token_ids else "")
    if name in ("shipped", "byte_level", "metaspace"):
        assert shown == whole, "what was shown need never be taken back"


@pytest.mark.parametrize("name", sorted(OTHERS.keys() - {"strips_the_end"}))
@examples(100)
@given(random=randoms, count=st.integers(0, 15))
def test_other_decoders_end_in_the_librarys_text_too(cases, name, random, count):
    case = cases[name]
    token_ids = [random.randrange(case.size) for _ in range(count)]
    _, whole = stream(case.detokenizer(DecodeStreams), split(random, token_ids))
    assert whole == (case.decode(token_ids) if token_ids else "")


@pytest.mark.parametrize("name", ["shipped", "byte_level", "metaspace"])
@examples(300)
@given(random=randoms, count=st.integers(0, 40))
def test_both_show_the_same_at_each_token(cases, name, random, count):
    case = cases[name]
    token_ids = case.ids(random, count)
    streams = [case.detokenizer(kind).stream() for kind in (DecodeStreams, ByteTable)]
    shown = ""
    for nth, token_id in enumerate(token_ids, 1):
        one, other = (each.step(token_id) for each in streams)
        assert one == other
        shown += one
        whole = case.decode(token_ids[:nth])
        assert whole.startswith(shown)
        assert shown == whole or whole.endswith("�")
        if streams[1].exact:
            assert shown == whole


@pytest.mark.parametrize("name", ["llama_2", "gemma"])
@examples(300)
@given(text=st.text(max_size=12))
@example("  两  🙂 e\u0301")
def test_byte_fallback_shows_a_character_with_its_last_byte(cases, name, text):
    case = cases[name]
    token_ids = [case.library.token_to_id(f"<0x{byte:02X}>") for byte in text.encode()]
    one, other = (case.detokenizer(kind).stream() for kind in (DecodeStreams, ByteTable))
    for token_id in token_ids:
        assert one.step(token_id) == other.step(token_id)
    if not text.endswith("�"):
        assert other.exact


def test_what_a_later_byte_unmakes_was_shown_but_is_not_in_the_text(cases):
    """E-acute, then half of it again, then a letter: the library says four U+FFFD."""
    case = cases["gemma"]
    token_ids = [case.library.token_to_id(t) for t in ("<0xC3>", "<0xA9>", "<0xC3>", "a")]
    for kind in (DecodeStreams, ByteTable):
        shown, whole = stream(case.detokenizer(kind), [[i] for i in token_ids])
        assert shown.startswith("é")
        assert whole == case.decode(token_ids) == "���a"


@every_bytewise
@both
def test_a_stop_token_has_no_part_in_the_text(cases, name, kind):
    """As in vLLM, where it is not special either; a character that it would have ended is cut."""
    case = cases[name]
    random = Random(5)
    for count in range(1, 30):
        token_ids = case.ids(random, count)
        steps = [[token_id] for token_id in token_ids]
        _, whole = stream(case.detokenizer(kind), steps, FinishReason.STOP)
        assert whole == (case.decode(token_ids[:-1]) if count > 1 else "")


@every_bytewise
def test_the_table_has_each_token_as_the_library_reads_it(cases, name):
    case = cases[name]
    table = ByteTable(case.path, case.size)
    for token_id in range(case.size):
        assert table.decode([token_id]) == case.decode([token_id])
    data, offsets, lengths = table.flat()
    for token_id, piece in enumerate(table.pieces):
        begin = offsets[token_id]
        assert data[begin : begin + lengths[token_id]].tobytes() == piece


@pytest.mark.parametrize("name", OTHERS)
def test_a_decoder_that_does_more_is_refused_for_the_table(paths, name):
    with pytest.raises(ValueError, match=rf"{name}.*use --axis detokenizer=decode_stream$"):
        ByteTable(paths[name], 10)
    DecodeStreams(paths[name], 10)


@pytest.mark.parametrize("kind", [DecodeStreams, ByteTable])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, kind):
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"vocab": {"a": 0}, "type": "Nonsense"}}')
    with pytest.raises(ValueError, match=r"^--axis (de)?tokenizer=[^\n]*$"):
        kind(str(path), 10)


@examples(1000)
@given(st.lists(st.binary(max_size=7) | st.text(max_size=3).map(str.encode), max_size=4))
def test_where_text_ends_within_a_character_by_its_last_four_bytes(parts):
    data = b"".join(parts)
    tail = np.frombuffer(data[-4:].rjust(4, b"\0"), np.uint8)
    whole = data.decode(errors="replace")
    assert ends_complete(tail[None])[0] == (not whole.endswith("�"))
