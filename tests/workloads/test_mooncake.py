"""Mooncake traces: read, written, and read again."""

import errno
import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads import catalog
from workloads.prefixes import seen_before
from workloads.recipe.lengths import Fixed
from workloads.traces import TraceError
from workloads.traces.mooncake import write_mooncake
from workloads.traces.trace import Trace
from workloads.workload import Workload

REAL = Path(__file__).parents[3] / "shared/data/mooncake_synthetic_trace.jsonl"


def line(timestamp=0, prompt=700, output=5, hash_ids=(0, 1), **more):
    return json.dumps(
        {
            "timestamp": timestamp,
            "input_length": prompt,
            "output_length": output,
            "hash_ids": list(hash_ids),
        }
        | more
    )


@pytest.fixture
def write(tmp_path):
    def write(*lines):
        path = tmp_path / "trace.jsonl"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return write


def recorded(path, **trace):
    return Workload(name="recorded", trace=Trace(str(path), **trace))


def test_lines_are_read_and_blocks_become_segments(write):
    path = write(line(2000, 700, 5, [3, 4]), line(500, 1024, 6, [3, 9]), line(500, 1, 7, [8]))
    requests = Trace(path).read()
    assert requests.prompt_lens.tolist() == [1024, 1, 700]
    assert requests.output_lens.tolist() == [6, 7, 5]
    assert requests.arrival_seconds.tolist() == [0, 0, 1.5]
    assert requests.segments.counts.tolist() == [2, 1, 2]
    assert (requests.segments.streams - 2**32).tolist() == [3, 9, 8, 3, 4]
    assert requests.segments.lens.tolist() == [512, 512, 1, 512, 188]
    made = recorded(path).realise(0)
    first, _, last = (made.prompt_token_ids(i, 2**30).tolist() for i in range(3))
    assert first[:512] == last[:512]
    assert first[512] != last[512]
    assert seen_before(made).tolist() == [0, 0, 512]


def test_a_window_has_its_own_blocks_only(write):
    path = write(*(line(1000 * i, 600, 5, [7, i + 10]) for i in range(6)))
    made = recorded(path, start_seconds=2, duration_seconds=3, time_scale=2).realise(0)
    assert made.arrival_seconds.tolist() == [0, 2, 4]
    assert (made.segment_streams - 2**32).tolist() == [7, 12, 7, 13, 7, 14]
    whole = recorded(path).realise(0)
    assert made.prompt_token_ids(0).tolist() == whole.prompt_token_ids(2).tolist()


def test_prompts_of_other_lengths_share_nothing(write):
    workload = msgspec.structs.replace(recorded(write(line(), line())), prompt_lens=Fixed(9))
    made = workload.realise(0)
    assert len(made.segment_counts) == 0
    assert made.output_lens.tolist() == [5, 5]


def test_other_fields_are_passed_over(write):
    assert Trace(write(line(session_id="a", delay=3))).read().prompt_lens.tolist() == [700]


BAD_LINES = {
    "": "expected timestamp, .* in JSON: ",
    "{": "in JSON: ",
    "[1, 2]": "in JSON: Expected `object`",
    '{"timestamp": 0, "input_length": 5, "output_length": 5}': "missing required field `hash_ids`",
    line(prompt="many"): "in JSON: input_length: Expected `int`, got `str`",
    line(prompt=0, hash_ids=[]): "expected input_length to be an integer from 1 to .*, found 0",
    line(output=-1): "expected output_length to be .*, found -1",
    line(prompt=10**40): "expected input_length|in JSON",
    line(prompt=700, hash_ids=[1]): "expected 2 hash_ids for 700 tokens, found 1",
    line(prompt=1024, hash_ids=[1, 2, 3]): "expected 2 hash_ids for 1024 tokens, found 3",
    line(hash_ids=[1, -2]): r"expected hash_ids to be integers from 0 to 2\*\*62 - 1",
    line(hash_ids=[1, 2**62]): "expected hash_ids",
    line(hash_ids=[1, 0.5]): r"in JSON: hash_ids\[1\]: Expected `int`",
    line(timestamp=-1): "expected timestamp to be from 0 to .* ms, found -1",
    line(timestamp="noon"): "in JSON: timestamp: Expected `float`",
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_refused_with_its_number_or_left_out_and_counted(write, bad):
    path = write(line(prompt=600), bad, line(prompt=601))
    with pytest.raises(TraceError, match=rf"trace\.jsonl line 2: .*({BAD_LINES[bad]})") as refused:
        Trace(path).read()
    assert str(refused.value).endswith("; pass --axis skip-bad-rows=on to leave such rows out")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500
    requests = Trace(path, skip_bad_rows=True).read()
    assert (requests.prompt_lens.tolist(), requests.bad_rows) == ([600, 601], 1)


@st.composite
def trees(draw):
    """Lines whose ids form a tree, as the format has it, numbered as they first appear."""
    ids: dict[tuple[int, int], int] = {}
    lines: list[str] = []
    timestamp = 0
    for _ in range(draw(st.integers(1, 12))):
        timestamp += draw(st.integers(0, 5000)) if lines else 0
        whole = draw(st.lists(st.integers(0, 1), max_size=4))
        rest = draw(st.integers(0 if whole else 1, 511))
        branches = [*whole, *([1000 + rest] if rest else [])]
        hash_ids, parent = [], -1
        for branch in branches:
            parent = ids.setdefault((parent, branch), len(ids))
            hash_ids.append(parent)
        prompt = 512 * len(whole) + rest
        lines.append(line(timestamp, prompt, draw(st.integers(1, 99)), hash_ids))
    return lines


@given(lines=trees(), seed=st.integers(0, 99))
def test_what_was_read_is_written_as_it_was(lines, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mooncake")
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    write_mooncake(recorded(folder / "a.jsonl").realise(seed), folder / "b.jsonl")
    assert (folder / "b.jsonl").read_text().splitlines() == lines


@pytest.mark.skipif(not REAL.exists(), reason="the Mooncake trace is not here")
def test_the_real_trace_is_written_as_it_was_read(tmp_path):
    made = recorded(REAL).realise(0)
    write_mooncake(made, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text().split("\n") == REAL.read_text().split("\n")


@pytest.mark.parametrize("name", ["multi-turn", "shared-prefix", "chat", "churn"])
def test_a_workload_comes_back_with_its_lengths_times_and_sharing(tmp_path, name):
    made = msgspec.structs.replace(catalog.load_workload(name), num_requests=300).realise(2)
    path = tmp_path / "trace.jsonl"
    write_mooncake(made, path)
    back = recorded(path).realise(2)
    assert back.prompt_lens.tolist() == made.prompt_lens.tolist()
    assert back.output_lens.tolist() == made.output_lens.tolist()
    assert np.abs(back.arrival_seconds - made.arrival_seconds).max() <= 0.0005 + 1e-9
    assert seen_before(back, 512).tolist() == seen_before(made, 512).tolist()
    write_mooncake(back, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == path.read_bytes()


def test_a_block_after_another_prefix_has_another_id(tmp_path, write):
    """Ids form a tree: the same tokens after others are another node of it."""
    path = write(line(0, 1024, 1, [0, 1]), line(0, 512, 1, [1]))
    write_mooncake(recorded(path).realise(0), tmp_path / "b.jsonl")
    ids = [json.loads(each)["hash_ids"] for each in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert ids == [[0, 1], [2]]


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "trace.jsonl"
    path.write_text("old")

    def no_space(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_mooncake(catalog.load_workload("chat").realise(0).head(3), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
