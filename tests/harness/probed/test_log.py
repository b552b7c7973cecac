"""A log of collections: what was written is read, however it was cut, divided and damaged."""

import csv
import io
import signal
import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli.main import main
from harness.files import StoreError
from harness.probed import log as log_module
from harness.probed.log import CollectionLog
from harness.probed.log_format import ended_pieces, frames_of, read_head
from harness.probed.read_log import LogReader, rows

WORD = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.lists(st.tuples(WORD, WORD, WORD, st.integers(0, 2), WORD), max_size=9)
READINGS = st.lists(
    st.tuples(st.dictionaries(st.integers(1, 2**31 - 1), RECORDS, max_size=3), st.integers(0, 9)),
    max_size=8,
)
"""Of each reading the new records by PID, and how many were lost."""


def process(pid, name="python"):
    ring = SimpleNamespace(python="3.12.3")
    return SimpleNamespace(pid=pid, name=f"{name}-{pid}", role="fork", ring=ring)


def array(records):
    return np.array(records, np.int64).reshape(-1, 5)


def write(path, readings, piece_bytes=log_module.PIECE_BYTES):
    """One frame for each reading; what was written, as (PID, …)."""
    written = []
    with CollectionLog(path, "boot", piece_bytes) as log:
        for found, lost in readings:
            for pid, records in found.items():
                log.record(process(pid), array(records))
                written += [(pid, *each) for each in records]
            log.has_read(lost, is_end=True)
        assert log.failure == ""
    return written


def read(path):
    found = LogReader(path).read()
    columns = (found.pid, found.start_ns, found.duration_ns, found.cpu_ns, found.generation)
    return list(zip(*(each.tolist() for each in columns), strict=True)), found


def without_freed(written):
    return [each[:5] for each in written]


@given(readings=READINGS, piece_bytes=st.integers(1, 2000))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_however_it_is_divided(tmp_path_factory, readings, piece_bytes):
    path = tmp_path_factory.mktemp("log") / "pauses"
    with mock.patch.object(log_module, "MOST_PIECES", 10**6):
        written = write(path, readings, piece_bytes)
    got, found = read(path)
    assert got == without_freed(written)
    assert found.notes == ()
    assert found.names == {each[0]: f"python-{each[0]}" for each in written} | {
        pid: f"python-{pid}" for records, _ in readings for pid in records
    }
    if readings:
        assert found.lost[-1].tolist() == [found.read_ns, readings[-1][1]]
    table = list(rows(path))
    assert table[0][4:] == ["start_ns", "duration_ns", "cpu_ns", "generation", "collected"]
    assert [(each[0], *each[4:]) for each in table[1:]] == written


@given(readings=READINGS, cut=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_one_that_ends_anywhere_is_a_beginning_and_says_so(tmp_path_factory, readings, cut):
    path = tmp_path_factory.mktemp("log") / "pauses"
    written = without_freed(write(path, readings))
    whole = path.read_bytes()
    begin = whole.index(b"\n") + 1
    kept = begin + int(cut * (len(whole) - begin))
    path.write_bytes(whole[:kept])
    got, found = read(path)
    assert got == written[: len(got)]
    with path.open("rb") as file:
        read_head(file)
        ends = [begin, *(each.end for each in frames_of(file, begin, kept))]
    assert len(found.lost) <= len(ends) - 1
    assert bool(found.notes) == (ends[-1] != kept)
    path.write_bytes(whole[:-1] if len(whole) > begin else whole)
    reader = LogReader(path)
    reader.read()
    path.write_bytes(whole)  # what was half written is whole by now
    found = reader.read()
    assert found.pid.tolist() == [each[0] for each in written]
    assert found.notes == ()


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=80, deadline=None)
def test_a_bit_that_flips_changes_no_collection_silently(tmp_path_factory, at, bit):
    path = tmp_path_factory.mktemp("log") / "pauses"
    written = write(path, [({7: [(k, 2, 3, 1, 5)] * 20}, 0) for k in range(6)])
    whole = bytearray(path.read_bytes())
    begin = whole.index(b"\n") + 1
    whole[begin + at % (len(whole) - begin)] ^= 1 << bit
    path.write_bytes(whole)
    got, found = read(path)
    assert got == without_freed(written)[: len(got)]
    assert len(got) == len(written) or "half written or damaged" in found.notes[0]


def test_pieces_are_bounded_and_the_oldest_goes(tmp_path):
    path = tmp_path / "pauses"
    one = [({1: [(k, 1, 1, 0, 0)]}, 0) for k in range(log_module.MOST_PIECES + 5)]
    write(path, one, piece_bytes=1)
    assert len(ended_pieces(path)) == log_module.MOST_PIECES - 1
    got, found = read(path)
    assert [each[1] for each in got] == list(range(6, log_module.MOST_PIECES + 5))
    assert found.began_ns > 0
    write(path, one[:1])  # a log that is made anew takes the pieces of the one before along
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_goes_on_where_it_was_when_pieces_have_ended_since(tmp_path):
    path, reader, seen = tmp_path / "pauses", None, []
    with CollectionLog(path, "boot", 400) as log:
        for k in range(40):
            log.record(process(3), array([(k, 1, 1, 0, 0)] * (k % 3)))
            log.has_read(k // 7, is_end=True)
            if k % 5 == 0:
                reader = reader or LogReader(path)
                seen.append(reader.read())
    found = reader.read()
    assert len(ended_pieces(path)) > 3
    expected = [k for k in range(40) for _ in range(k % 3)]
    assert found.start_ns.tolist() == expected
    assert found.notes == ()
    for each in seen:
        assert each.start_ns.tolist() == expected[: len(each.start_ns)]
    for begin, end in ((0, 2**62), (int(found.lost[0][0]), found.read_ns)):
        assert found.lost_between(begin, end) == LogReader(path).read().lost_between(begin, end)


def test_pieces_that_went_before_they_were_read_are_said(tmp_path):
    path = tmp_path / "pauses"
    with CollectionLog(path, "boot", 1) as log:
        log.has_read(0, is_end=True)
        reader = LogReader(path)
        reader.read()
        for _ in range(4):
            log.has_read(0, is_end=True)
        ended_pieces(path)[3].unlink()
        assert any("were removed before they were read" in each for each in reader.read().notes)


def test_a_file_of_that_name_that_is_no_piece_is_left_alone(tmp_path):
    path, other = tmp_path / "pauses", tmp_path / "pauses.1"
    other.write_text("mine")
    with CollectionLog(path, "boot", 1) as log:
        log.record(process(3), array([(1, 1, 1, 0, 0)]))
        log.has_read(0, is_end=True)
        assert "pauses.1 is there already" in log.failure
    assert other.read_text() == "mine"
    assert len(read(path)[0]) == 1


WRITER = """
import sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from harness.probed.log import CollectionLog

process = SimpleNamespace(pid=3, name="p", role="fork", ring=SimpleNamespace(python="3.12.3"))
with CollectionLog(Path(sys.argv[1]), "boot", 20_000) as log:
    k = 0
    while True:
        records = np.zeros((50, 5), np.int64)
        records[:, 0] = np.arange(k, k + 50)
        log.record(process, records)
        log.has_read(0, is_end=True)
        k += 50
        print(k, flush=True)
"""


def test_kill_9_loses_nothing_that_was_said(tmp_path):
    path = tmp_path / "pauses"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        for _ in range(2000):
            said = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        said = max([said, *map(int, writer.stdout.read().split("\n")[:-1])])
    got, _ = read(path)
    assert [each[1] for each in got] == list(range(len(got)))
    assert len(got) >= said
    assert len(ended_pieces(path)) >= 2


def test_a_log_is_printed_as_a_table(tmp_path, capfd):
    path = tmp_path / "pauses"
    write(path, [({7: [(1, 2, 3, 0, 9), (5, 2, 3, 2, 4)]}, 0)])
    assert main(["report", str(path), "--csv", "-"]) == 0
    table = list(csv.reader(io.StringIO(capfd.readouterr().out)))
    assert table[0][:2] == ["pid", "name"]
    assert table[1:] == [
        ["7", "python-7", "fork", "3.12.3", "1", "2", "3", "0", "9"],
        ["7", "python-7", "fork", "3.12.3", "5", "2", "3", "2", "4"],
    ]
    assert main(["report", str(path), "--csv", str(tmp_path / "t.csv")]) == 0
    assert list(csv.reader((tmp_path / "t.csv").read_text().splitlines())) == table
    assert main(["report", str(path)]) == 2
    assert f"gcbench report {path} --csv -" in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"\x00" * 100, b"{}\n"])
def test_what_is_no_log_is_refused(tmp_path, content):
    path = tmp_path / "pauses"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is no log of collections"):
        LogReader(path).read()
