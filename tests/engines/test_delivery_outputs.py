"""Tokens, reasons, text and log-probabilities, the same by every way they can be delivered."""

import re
from dataclasses import replace
from random import Random

import pytest
from delivery_runs import MOST_TOKENS, Asked, Outcome, config_of, drive, expected, variants
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engines.builtin.delivery.choice import check_delivery, check_params, load_delivery
from engines.builtin.delivery.choice import delivery_contradiction as contradiction_of
from engines.builtin.delivery.per_request import EachOutput
from engines.builtin.engine import Engine
from engines.builtin.text.byte_table import ByteTable
from engines.protocol import FinishReason, SamplingParams
from engines.vocabulary import SHIPPED_TOKENIZER

randoms = st.integers(0, 2**32).map(Random)
LIBRARY = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
TABLE = ByteTable("", 8192)
INCOMPLETE = [i for i, string in enumerate(TABLE.strings) if string is None]
TEXTS = ["stop here", "日本語 stop", "a🙂b", "endend", "é\n\nè", "STOP", "x y z"]
STOPS = ["stop", "日", "🙂b", "dend", "\n\n", "e", "本語 s", "OP", " "]
EOS = 77


def draw_tokens(random: Random) -> list[int]:
    """Text in tokens, text in single bytes, bytes that are no text, anything."""
    token_ids: list[int] = []
    while len(token_ids) < MOST_TOKENS + 8:
        text = random.choice(TEXTS)
        kind = random.random()
        if kind < 0.4:
            token_ids += LIBRARY.encode(text).ids
        elif kind < 0.7:
            token_ids += [TABLE.pieces.index(bytes([byte])) for byte in text.encode()]
        elif kind < 0.85:
            token_ids += random.choices(INCOMPLETE, k=random.randint(1, 3))
        else:
            token_ids += random.choices([EOS, 0, *range(8192)], k=random.randint(1, 3))
    return token_ids


def draw_params(random: Random, has_text: bool) -> SamplingParams:
    most = random.randint(1, MOST_TOKENS)
    return SamplingParams(
        max_tokens=most,
        min_tokens=random.choice([0, 0, random.randint(0, most)]),
        stop_token_ids=tuple(random.choices(range(300), k=random.choice([0, 0, 40]))),
        stop=tuple(random.sample(STOPS, random.choice([0, 1, 1, 3]))) if has_text else (),
        include_stop_str_in_output=random.random() < 0.3,
        ignore_eos=random.random() < 0.7,
    )


def draw(random: Random, has_text: bool = True) -> list[Asked]:
    return [
        Asked(
            index,
            draw_tokens(random),
            draw_params(random, has_text),
            random.randint(0, MOST_TOKENS) if random.random() < 0.15 else None,
        )
        for index in range(random.randint(1, 9))
    ]


def check(run, asked: list[Asked], has_text: bool) -> None:
    for each in asked:
        whole = expected(each, LIBRARY if has_text else None, EOS)
        got = run.outcomes[each.index]
        if got.reason is FinishReason.ABORT:
            assert got.tokens == each.token_ids[: len(got.tokens)]
            assert got.text is None
        else:
            assert got[:3] == whole[:3]
        streamed = run.streamed.get(each.index)
        if streamed is not None:
            assert streamed.tokens == got.tokens
            text = LIBRARY.decode(got.tokens) if got.text is None else got.text
            assert not has_text or text.startswith(streamed.text)
            if got.reason is not FinishReason.ABORT:
                assert streamed.reason is got.reason
                assert not has_text or streamed.text == got.text


@examples(25)
@given(randoms, st.sampled_from(["decode_stream", "byte_table"]))
def test_every_way_gives_the_librarys_text_and_stops_at_the_same_token(random, detokenizer):
    """Whatever the split, and whoever is preempted in the middle of a character or stop string."""
    asked = draw(random)
    for config in variants(detokenizer=detokenizer, eos_token_id=EOS, vocab_size=8192):
        for seed in (1, 2):
            check(drive(config, asked, seed), asked, has_text=True)


@examples(25)
@given(randoms)
def test_without_text_every_way_stops_at_the_same_token(random):
    asked = draw(random, has_text=False)
    for config in variants(detokenizer="none", eos_token_id=EOS):
        check(drive(config, asked, 1), asked, has_text=False)


@examples(8)
@given(randoms, st.sampled_from(["none", "byte_table"]), st.integers(0, 3))
def test_log_probabilities_follow_their_tokens_in_either_shape(random, detokenizer, num_logprobs):
    asked = draw(random, has_text=detokenizer != "none")
    for shape in ("lists", "arrays"):
        for config in variants(
            detokenizer=detokenizer,
            eos_token_id=EOS,
            vocab_size=8192,
            logprobs=f"{shape}:{num_logprobs}",
        ):
            run = drive(config, asked, 3)
            check(run, asked, has_text=detokenizer != "none")
            for index, got in run.outcomes.items():
                if got.reason is FinishReason.ABORT:
                    continue
                assert got.logprobs is not None
                check_logprobs(index, got, num_logprobs)
                if config.delivery == "per_request" and got.tokens:
                    assert run.streamed[index].logprobs == got.logprobs


def check_logprobs(index: int, got: Outcome, num_logprobs: int) -> None:
    assert len(got.logprobs) == len(got.tokens)
    for position, logprobs in enumerate(got.logprobs):
        own = 100 * index + position
        assert list(logprobs) == [10 * own + place for place in range(num_logprobs + 1)]
        values = list(logprobs.values())
        assert [each.logprob for each in values] == [
            -own - place / 16 for place in range(num_logprobs + 1)
        ]
        assert [each.rank for each in values] == [10 * own + 1, *range(1, num_logprobs + 1)]


@examples(20)
@given(
    randoms,
    st.sampled_from(["none", "decode_stream", "byte_table"]),
    st.sampled_from(["none", "arrays:2"]),
)
def test_streams_lose_nothing_however_late_they_are_read(random, detokenizer, logprobs):
    """And each output is the same, whoever has made it, at the same moment."""
    asked = draw(random, has_text=detokenizer != "none")
    fields = {"eos_token_id": EOS, "vocab_size": 8192, "logprobs": logprobs}
    runs = []
    for config in variants(detokenizer=detokenizer, request_streams="collector", **fields):
        run = drive(config, asked, 4)
        check(run, asked, has_text=detokenizer != "none")
        for index, got in run.outcomes.items():
            assert index in run.streamed or not got.tokens
            if got.logprobs is not None and got.tokens:
                assert run.streamed[index].logprobs == list(got.logprobs)
        runs.append(run)
    assert all(run.pieces == runs[0].pieces for run in runs[1:])


@examples(6)
@given(randoms)
def test_tokenizers_with_byte_fallback_are_delivered_alike(paths, random):
    """Against each other and, where nothing stops them, against the library."""
    for name in ("llama_2", "gemma", "metaspace"):
        path = paths[name]
        library = Tokenizer.from_file(path)
        size = library.get_vocab_size()
        asked = []
        for index in range(6):
            tokens = draw_with_bytes(random, library)
            stop = random.choice([(), (), ("a",), ("é", " H"), ("日a",)])
            params = SamplingParams(random.randint(1, MOST_TOKENS), stop=stop)
            asked.append(Asked(index, tokens, params))
        fields = {"tokenizer": path, "vocab_size": size, "detokenizer": "byte_table"}
        runs = [drive(config, asked, 5) for config in variants(**fields)]
        streams = [
            drive(config, asked, 5) for config in variants(request_streams="collector", **fields)
        ]
        assert all(run.pieces == streams[0].pieces for run in streams[1:])
        for each in asked:
            outcomes = [run.outcomes[each.index] for run in runs]
            assert all(outcome == outcomes[0] for outcome in outcomes)
            if not each.params.stop:
                assert outcomes[0].text == library.decode(outcomes[0].tokens)


def draw_with_bytes(random: Random, library: Tokenizer) -> list[int]:
    """Words, characters byte by byte, and bytes that are none."""
    by_token = library.get_vocab()
    words = [i for token, i in by_token.items() if not token.startswith("<0x")]
    tokens: list[int] = []
    while len(tokens) < MOST_TOKENS + 4:
        tokens.append(random.choice(words))
        data = random.choice(["", "é", "日a", " 🙂"]).encode() + bytes([random.choice(range(256))])
        tokens += [by_token.get(f"<0x{byte:02X}>", 0) for byte in data[: random.choice([0, 2, 9])]]
    return tokens


def test_what_is_drawn_meets_every_end_in_every_delivery():
    """Stop strings, stop tokens, lengths and aborts; preempted ones and several tokens a step."""
    reasons = {}
    for seed in range(30):
        asked = draw(Random(seed))
        config = config_of(detokenizer="byte_table", eos_token_id=EOS, vocab_size=8192)
        for index, got in drive(config, asked, seed).outcomes.items():
            stops = asked[index].params.stop_token_ids
            by_token = got.tokens and got.tokens[-1] in (*stops, EOS)
            reasons.setdefault((got.reason, bool(by_token)), []).append(got)
    assert len(reasons[FinishReason.STOP, False]) > 20, "by a stop string"
    assert len(reasons[FinishReason.STOP, True]) > 5
    assert len(reasons[FinishReason.LENGTH, False]) > 20
    assert sum(len(each) for (reason, _), each in reasons.items() if reason == 2) > 5


def test_the_ordinary_loop_makes_outputs_with_no_room_for_text():
    run = drive(config_of(), [Asked(0, [1] * 9, SamplingParams(5))], 1)
    assert run.outcomes[0].tokens == [1] * 5
    (stage,) = filter(None, load_delivery(config_of()).stages(config_of()))
    assert type(stage) is EachOutput
    config = config_of(delivery="columnar", representation="flat_arrays")
    assert not any(load_delivery(config).stages(config))


def test_what_was_not_asked_for_is_refused_when_it_is_wanted():
    plain = Engine(config_of())
    with pytest.raises(ValueError, match="--axis detokenizer=none"):
        plain.output_text(0)
    with pytest.raises(ValueError, match="--axis logprobs=none"):
        plain.output_logprobs(0)
    with pytest.raises(ValueError, match="--axis request-streams=none"):
        plain.request_stream(0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"detokenizer": "decode_stream"},
            "--axis detokenizer=decode_stream: it keeps objects.*; use none or byte_table,",
        ),
        ({"logprobs": "lists:3"}, "--axis logprobs=lists:3.*use none or arrays,"),
    ],
)
def test_columns_do_not_go_with_an_object_a_request(fields, words):
    config = config_of(delivery="columnar", representation="flat_arrays")
    assert contradiction_of(config) == ""
    said = contradiction_of(replace(config, **fields))
    assert re.match(f"columnar delivery with {words} or --delivery per_request$", said)
    assert contradiction_of(config_of(**fields)) == ""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"detokenizer": "byte_tabel"}, r"unknown detokenizer.*byte_table"),
        ({"request_streams": "collect"}, r"unknown kind of request stream.*collector"),
        ({"logprobs": "list:5"}, r"unknown shape.*lists"),
        ({"logprobs": "lists"}, r"^--axis logprobs=lists: must be none, lists:K or arrays:K"),
        ({"logprobs": "none:3"}, r"^--axis logprobs=none:3: must be"),
        ({"logprobs": "arrays:-1"}, r"^--axis logprobs=arrays:-1: must be"),
        ({"logprobs": "arrays:²"}, r"^--axis logprobs=arrays:²: must be"),
        ({"detokenizer": "byte_table", "tokenizer": "/nowhere"}, r"^--axis tokenizer=/nowhere: "),
        (
            {"detokenizer": "decode_stream", "tokenizer": "/nowhere"},
            r"^--axis tokenizer=/nowhere: ",
        ),
    ],
)
def test_what_is_unknown_is_refused_in_a_sentence(fields, words):
    with pytest.raises(ValueError, match=words):
        check_delivery(config_of(**fields))


@pytest.mark.parametrize(("least", "most"), [(-1, 3), (4, 3)])
def test_impossible_min_tokens_are_refused(least, most):
    with pytest.raises(ValueError, match=rf"^request 9: min_tokens {least} must be .*, {most}$"):
        check_params(9, SamplingParams(most, least), config_of())
    check_params(9, SamplingParams(most, 0), config_of())


def test_a_stop_string_needs_a_detokenizer():
    params = SamplingParams(5, stop=("x",))
    with pytest.raises(ValueError, match="request 9: stop strings"):
        check_params(9, params, config_of())
    check_params(9, params, config_of(detokenizer="byte_table"))
