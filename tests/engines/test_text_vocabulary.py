"""What a tokenizer's file says of its vocabulary, and what is said of one that is none."""

import json

import pytest
from tokenizer_files import BYTEWISE, OTHERS
from tokenizers import Tokenizer

from engines.vocabulary import SHIPPED_TOKENIZER, read_vocabulary

END = {"id": 1, "content": "</s>", "special": True}


def write(folder, tokens=("a", "b"), added=(), **beside) -> str:
    spec = {"model": {"vocab": {t: i for i, t in enumerate(tokens)}}, "added_tokens": list(added)}
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    for name, eos in beside.items():
        (folder / f"{name}.json").write_text(json.dumps({"eos_token_id": eos}))
    return str(folder / "tokenizer.json")


def test_the_shipped_file_is_what_the_constants_say():
    tokenizer = Tokenizer.from_file(str(SHIPPED_TOKENIZER))
    vocabulary = read_vocabulary("")
    assert vocabulary == read_vocabulary(str(SHIPPED_TOKENIZER))
    assert vocabulary.size == tokenizer.get_vocab_size() == 8192
    assert tokenizer.id_to_token(vocabulary.eos_token_id) == "<|endoftext|>"
    assert SHIPPED_TOKENIZER.stat().st_size < 500_000
    text = "def f(x): return 'héllo 日本語 🙂'"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert len(tokenizer.encode("日").ids) > 1, "characters must be cut between tokens"


@pytest.mark.parametrize("name", [*BYTEWISE, *OTHERS])
def test_the_size_is_the_librarys(name, paths):
    path = paths[name]
    ids = Tokenizer.from_file(path).get_vocab(with_added_tokens=True).values()
    assert read_vocabulary(path).size == max(ids) + 1


def test_an_added_token_beyond_the_model_counts(tmp_path):
    added = [{"id": 7, "content": "x", "special": False}]
    assert read_vocabulary(write(tmp_path, added=added)) == (8, -1)


def test_a_folder_means_the_file_in_it(tmp_path):
    write(tmp_path, added=[END])
    assert read_vocabulary(str(tmp_path)) == (2, 1)


@pytest.mark.parametrize(
    ("beside", "eos"),
    [
        ({"generation_config": 5, "config": 6}, 5),
        ({"generation_config": None, "config": 6}, 6),
        ({"config": [7, 8]}, 7),
        ({"config": []}, 1),
        ({"config": None}, 1),
        ({}, 1),
    ],
)
def test_the_files_beside_it_say_what_ends_a_text(tmp_path, beside, eos):
    assert read_vocabulary(write(tmp_path, added=[END], **beside)).eos_token_id == eos


def test_two_tokens_that_could_end_a_text_are_none(tmp_path):
    added = [END, {"id": 2, "content": "<|endoftext|>", "special": True}]
    assert read_vocabulary(write(tmp_path, added=added)).eos_token_id == -1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        '{"model": {}}',
        '{"model": {"vocab": 5}}',
        '{"model": {"vocab": {"a": "b"}}}',
        '{"model": {"vocab": {}}}',
        '{"model": {"vocab": []}}',
        '{"model": {"vocab": {"a": 0}}, "added_tokens": [{}]}',
        "\ud800",
    ],
)
def test_what_is_no_tokenizer_is_refused_in_a_sentence(tmp_path, text):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(
        ValueError, match=r"^--axis tokenizer=.*tokenizer\.json[^\n]*; give "
    ) as refusal:
        read_vocabulary(str(path))
    assert "\n" not in str(refusal.value)


def test_a_path_to_nothing_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"^--axis tokenizer=.*nowhere: No such file.*; give "):
        read_vocabulary(str(tmp_path / "nowhere"))
    with pytest.raises(
        ValueError, match=r"^--axis tokenizer=.*tokenizer.json: No such file.*; give "
    ):
        read_vocabulary(str(tmp_path))


def test_a_broken_file_beside_it_is_named(tmp_path):
    path = write(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"^--axis tokenizer=.*config\.json"):
        read_vocabulary(path)
