"""Workloads and traces of somebody who means no good: a sentence each, in bounded time."""

import io
import os
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from examples import examples
from hostile_values import GIB, NO_FILES, spoilt
from hypothesis import given

import engines.regular_file
import workloads.files.regular_file
from workloads import catalog
from workloads.files.toml_file import read_toml_table
from workloads.recipe.spec import read_toml
from workloads.schedule import Schedule
from workloads.summary import summarise_workload
from workloads.traces import TraceError
from workloads.traces.trace import Trace
from workloads.workload import Workload

CATALOGUE = Path(catalog.__file__).with_suffix("")
RECIPES = [tomllib.loads(path.read_text()) for path in sorted(CATALOGUE.glob("*.toml"))]
RECIPES += [
    {
        "num_requests": 8,
        "prompt_lens": {"kind": "zipf", "exponent": 1.0, "low": 1, "high": 9},
        "output_lens": {"kind": "histogram", "bins": [[1, 2, 0.5], [3, 4, 0.5]]},
        "arrivals": {"kind": "ramp", "from_rate": 1.0, "to_rate": 2.0, "seconds": 3.0},
    },
    {
        "num_requests": 8,
        "prompt_lens": {"kind": "empirical", "values": [1, 2]},
        "output_lens": {"kind": "lognormal", "median": 4.0, "sigma": 1.0},
        "arrivals": {"kind": "gamma", "rate": 1.0, "cv": 2.0},
        "turns": {"count": {"kind": "uniform", "low": 1, "high": 3}, "think_seconds": 1.0},
        "shared_prefix": {"groups": 2, "tokens": 3},
    },
]


def _is_open(path: Path) -> bool:
    """By this process. How many are open says less: the collector closes other tests' files."""
    opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    return os.path.realpath(path) in opened


@pytest.mark.parametrize("module", [workloads.files.regular_file, engines.regular_file])
@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_neither_waited_for_nor_read(tmp_path, module, make):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError, match=str(path)) as refused:
        module.read_regular(path)
    assert refused.value.strerror
    assert not _is_open(path)


@pytest.mark.parametrize("module", [workloads.files.regular_file, engines.regular_file])
def test_a_file_is_read_up_to_its_bound(tmp_path, module):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert module.read_regular(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        module.read_regular(path, 4)
    # Says that it has no bytes, and has some: what grows between the two looks alike.
    with pytest.raises(OSError, match="larger than 4 bytes"):
        module.read_regular(Path("/proc/self/status"), 4)


def test_the_two_readers_of_files_are_one():
    """Neither package knows the other."""
    one, other = (
        Path(module.__file__).read_text()
        for module in (workloads.files.regular_file, engines.regular_file)
    )
    assert one == other


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
@pytest.mark.parametrize("name", ["a.toml", "a.csv", "a.jsonl"])
def test_a_workload_that_is_no_file_is_one_sentence(tmp_path, make, name):
    path = tmp_path / name
    make(path)
    with pytest.raises(ValueError, match=str(path)) as refused:
        catalog.load_workload(str(path)).realise(0)
    assert "\n" not in str(refused.value)


@given(spoilt(RECIPES))
@examples(1000)
def test_whatever_a_recipe_holds_it_is_realised_or_refused(recipe):
    try:
        workload = msgspec.convert({"name": "x"} | recipe, Workload)
    except ValueError:
        return
    if (workload.num_requests or 0) > 10_000:
        workload = msgspec.structs.replace(workload, num_requests=100)
    try:
        summary = summarise_workload(workload, workload.realise(0), 0)
    except ValueError:
        return
    assert summary.num_requests == workload.num_requests


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 100_000) + " = 1",
        "[" + " . ".join(["a"] * 100_000) + "]",
        "x = {" + ".".join(['"="'] * 100_000) + " = 1}",
        "x = 'y'\n" + ".".join(["'a]'"] * 100_000) + " = 1",
    ],
    ids=["key", "table", "inline", "literal"],
)
def test_long_keys_are_refused_before_tomllib_counts_their_parts(tmp_path, text):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match="more than 32 parts"):
        read_toml(path, Workload, "workload")


def test_dots_that_part_no_key_are_none(tmp_path):
    path = tmp_path / "a.toml"
    text = (
        f"# {'.' * 99} {'a. ' * 99}\n"
        f"x = [{'0.5, ' * 99}]\n"
        f"y = '{'a.' * 99}'\n"
        f'z = "{chr(92)}"{".a" * 99}"\n' + "".join(f"[t{i}.a.b.c]\nd.e = 1.5\n" for i in range(99))
    )
    path.write_text(text)
    assert read_toml_table(path) == tomllib.loads(text)


@given(spoilt([{"timestamp": 5, "input_length": 513, "output_length": 2, "hash_ids": [1, 2]}]))
@examples(300)
def test_whatever_a_line_of_a_trace_holds_it_is_used_or_refused(tmp_path_factory, line):
    path = tmp_path_factory.getbasetemp() / "trace.jsonl"
    good = {"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}
    try:
        path.write_bytes(b"\n".join(map(msgspec.json.encode, (good, line))))
    except (OverflowError, ValueError):
        return
    with suppress(TraceError):
        assert catalog.load_workload(str(path)).realise(0).num_requests == 2


@pytest.mark.parametrize("timestamp", ["1e308", "-1", "1e999", "NaN", "-1e-300", "1e14", "null"])
def test_a_time_that_is_none_is_a_bad_row(tmp_path, timestamp):
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}\n'
        f'{{"timestamp": {timestamp}, "input_length": 1, "output_length": 1, "hash_ids": [0]}}\n'
    )
    with pytest.raises(TraceError, match="line 2: expected timestamp"):
        Trace(str(path)).read()
    assert Trace(str(path), skip_bad_rows=True).read().bad_rows == 1


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_of_a_gigabyte_is_not_read_to_its_end(tmp_path, name):
    path = tmp_path / name
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,1\n")
    os.truncate(path, GIB)
    with pytest.raises(TraceError, match=r"line [13]: at most .* of 1,048,576 bytes each"):
        Trace(str(path), skip_bad_rows=True).read()


def test_empty_lines_count_where_a_trace_goes_on_after_them(tmp_path):
    path = tmp_path / "a.csv"
    row = "2023-11-16 18:15:46,1,1\n"
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{row}\n  \n{row}\n\n")
    assert Trace(str(path), skip_bad_rows=True).read().bad_rows == 2


def test_a_schedule_that_would_unpack_to_gigabytes_is_refused(tmp_path):
    path = tmp_path / "schedule.npz"
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2**20, np.int8))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("prompt_lens.npy", buffer.getvalue())
        archive.writestr("header.npy", buffer.getvalue())
    with pytest.raises(ValueError, match="damaged or not a schedule"):
        Schedule.load(path)
