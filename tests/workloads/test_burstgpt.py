import numpy as np
import pytest

from workloads.traces import TraceError
from workloads.traces.trace import Trace

HEADER = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
SESSIONS = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
)


@pytest.fixture
def write(tmp_path):
    def write(*lines, header=HEADER, end="\n"):
        path = tmp_path / "BurstGPT.csv"
        path.write_bytes(end.join([header, *lines]).encode())
        return str(path)

    return write


def row(timestamp="5", prompt="472", output="18"):
    return f"{timestamp},ChatGPT,{prompt},{output},490,Conversation log"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_are_read_and_times_count_from_the_first(write, end):
    path = write(row("45.25", "3", "4"), row("5", "1", "2"), row("5", "9", "8"), "", end=end)
    requests = Trace(path).read()
    assert requests.prompt_lens.tolist() == [1, 9, 3]
    assert requests.output_lens.tolist() == [2, 8, 4]
    assert requests.arrival_seconds.tolist() == [0, 0, 40.25]
    assert (requests.prompt_lens.dtype, requests.arrival_seconds.dtype) == (np.int32, np.float64)
    assert (requests.bad_rows, len(requests.segments.counts)) == (0, 0)


def test_columns_are_found_by_name(write):
    path = write("7.5,1,0.2,GPT-4,11,22,33,API log", header=SESSIONS)
    requests = Trace(path).read()
    assert (requests.prompt_lens.tolist(), requests.output_lens.tolist()) == ([11], [22])


def test_window_and_scale_are_those_of_every_trace(write):
    path = write(*(row(str(100 + i), str(i + 1)) for i in range(10)))
    requests = Trace(path, 3, 4, 0.5, 3).read()
    assert requests.prompt_lens.tolist() == [4, 5, 6]
    assert requests.arrival_seconds.tolist() == [0, 0.5, 1.0]


BAD_ROWS = {
    "5,ChatGPT,472,0,472,Conversation log": "0 Response tokens, which is a request that failed",
    "5,ChatGPT,472,-3,469,Conversation log": "expected Response tokens .*, found '-3'",
    "5,ChatGPT,0,18,18,Conversation log": "expected Request tokens .*, found '0'",
    "5,ChatGPT,,18,18,Conversation log": "expected Request tokens .*, found ''",
    "now,ChatGPT,472,18,490,Conversation log": "expected Timestamp to be seconds .*, found 'now'",
    "-5,ChatGPT,472,18,490,Conversation log": "expected Timestamp",
    "1e5,ChatGPT,472,18,490,Conversation log": "expected Timestamp",
    "5,ChatGPT,472,18,490": "expected 6 columns, found 5",
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_refused_with_its_line_or_left_out_and_counted(write, bad):
    path = write(row(prompt="1"), bad, row(prompt="2"))
    with pytest.raises(TraceError, match=rf"BurstGPT\.csv line 3: {BAD_ROWS[bad]}") as refused:
        Trace(path).read()
    assert str(refused.value).endswith("; pass --axis skip-bad-rows=on to leave such rows out")
    requests = Trace(path, skip_bad_rows=True).read()
    assert (requests.prompt_lens.tolist(), requests.bad_rows) == ([1, 2], 1)


def test_another_header_is_refused_with_both_that_are_read(write):
    with pytest.raises(TraceError, match=r"line 1: expected .*Azure.*Response tokens as BurstGPT"):
        Trace(write(row(), header=HEADER.replace("Request", "Prompt"))).read()
