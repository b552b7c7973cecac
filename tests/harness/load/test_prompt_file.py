"""Prompts of one's own, in each form that is read."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.load.prompt_file import read_prompts

CHAT = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
ROWS = [{"prompt": "one"}, {"nothing": 1}, {"text": "two"}]


def test_json_lines_and_the_fields_that_hold_texts(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text(
        "\n".join([*map(json.dumps, ROWS), "", '"three"', json.dumps({"messages": CHAT})])
    )
    assert read_prompts(path) == ["one", "two", "three", CHAT[:1]]


def test_sharegpt_as_chats_up_to_the_last_word_of_a_human(tmp_path):
    path = tmp_path / "s.json"
    said = [("human", "a"), ("gpt", "b"), ("human", "c"), ("gpt", "d")]
    turns = [{"from": who, "value": what} for who, what in said]
    path.write_text(json.dumps([{"id": "1", "conversations": turns}, {"conversations": []}]))
    (found,) = read_prompts(path)
    assert [each["role"] for each in found] == ["user", "assistant", "user"]
    assert [each["content"] for each in found] == ["a", "b", "c"]


def test_a_data_set_on_disk_as_it_is_saved_and_as_parquet(tmp_path):
    table = pa.table({"prompt": ["one", "two"]})
    path = str(tmp_path / "data-00000-of-00001.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    assert read_prompts(tmp_path) == ["one", "two"]
    pq.write_table(table, tmp_path / "x.parquet")
    assert read_prompts(tmp_path / "x.parquet") == ["one", "two"]
    assert read_prompts(tmp_path) == ["one", "two"] * 2


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "\xff", "[" * 100_000])
def test_what_holds_no_prompt_is_refused_in_a_sentence(tmp_path, content):
    path = tmp_path / "p.jsonl"
    path.write_text(content, "latin-1")
    with pytest.raises(ValueError, match="--prompts"):
        read_prompts(path)
    with pytest.raises(ValueError, match="--prompts"):
        read_prompts(tmp_path / "absent.jsonl")
