import csv
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from workloads.traces import TraceError
from workloads.traces.trace import Trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
REAL = Path(__file__).parents[3] / "shared/data/AzureLLMInferenceTrace_conv.csv"


@pytest.fixture
def write(tmp_path):
    def write(*lines, header=HEADER, end="\n"):
        path = tmp_path / "trace.csv"
        path.write_bytes(end.join([header, *lines]).encode())
        return str(path)

    return write


def row(seconds="00.0000000", prompt=10, output=5):
    return f"2023-11-16 18:15:{seconds},{prompt},{output}"


def brute_force(path):
    """Seconds since the earliest row, prompt and output lengths, by csv and exact decimals."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    parsed = []
    for each in rows:
        whole, fraction = each["TIMESTAMP"].split(".")
        moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S") - datetime(2023, 1, 1)
        seconds = moment.days * 86_400 + moment.seconds + Decimal(f"0.{fraction}")
        parsed.append((seconds, int(each["ContextTokens"]), int(each["GeneratedTokens"])))
    first = min(seconds for seconds, _, _ in parsed)
    return [(float(seconds - first), prompt, output) for seconds, prompt, output in parsed]


@pytest.mark.skipif(not REAL.exists(), reason="the Azure conversation trace is not here")
@pytest.mark.parametrize(
    ("start", "duration", "scale", "most"),
    [(0, None, 1, None), (600, 300, 0.5, None), (1000.5, 100, 3, 50)],
)
def test_the_real_trace_reads_as_a_plain_reader_has_it(start, duration, scale, most):
    end = float("inf") if duration is None else start + duration
    rows = [each for each in sorted(brute_force(REAL)) if start <= each[0] < end][:most]
    seconds, prompts, outputs = zip(*rows, strict=True)
    requests = Trace(str(REAL), start, duration, scale, most).read()
    assert requests.prompt_lens.tolist() == list(prompts)
    assert requests.output_lens.tolist() == list(outputs)
    expected = (np.array(seconds) - start) * scale
    np.testing.assert_allclose(requests.arrival_seconds, expected, rtol=0, atol=1e-9)
    assert requests.bad_rows == 0


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_seventh_digit_counts_and_rows_are_sorted(write, end):
    path = write(row("01.0000003", 7, 8), row("01.0000001", 3, 4), "", end=end)
    requests = Trace(path).read()
    assert requests.arrival_seconds.tolist() == [0, 2e-7]
    assert requests.prompt_lens.tolist() == [3, 7]
    assert requests.output_lens.tolist() == [4, 8]


def test_timestamps_of_the_2024_traces(write):
    path = write("2024-05-10 00:00:00.009930+00:00,1,1", "2024-05-11 00:00:01+00:00,1,1")
    assert Trace(path).read().arrival_seconds.tolist() == [0, 86_400.99007]


def test_a_window_is_half_open_and_counts_from_its_start(write):
    path = write(*(row(f"0{second}.0", prompt=second + 1) for second in range(6)))
    requests = Trace(path, start_seconds=2, duration_seconds=2, time_scale=10).read()
    assert requests.prompt_lens.tolist() == [3, 4]
    assert requests.arrival_seconds.tolist() == [0, 10]


BAD_ROWS = {
    "2023-11-16 18:15:46.6805900,374": "expected 3 columns, found 2",
    "2023-11-16 18:15:46.6805900,374,44,1": "expected 3 columns, found 4",
    "": "expected 3 columns, found 1",
    "yesterday,374,44": "expected a timestamp .*, found 'yesterday'",
    "2023-13-16 18:15:46.6805900,374,44": "expected a timestamp .*, found '2023-13-16",
    "NaT,374,44": "expected a timestamp",
    "2023-11-16 18:15:46,many,44": "expected ContextTokens to be an integer .*, found 'many'",
    "2023-11-16 18:15:46,3.5,44": "expected ContextTokens",
    "2023-11-16 18:15:46,0,44": "expected ContextTokens",
    "2023-11-16 18:15:46,374,-1": "expected GeneratedTokens to be an integer .*, found '-1'",
    "2023-11-16 18:15:46,374,99999999": "expected GeneratedTokens",
    f"2023-11-16 18:15:46,374,{'9' * 5000}": "expected GeneratedTokens",
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_a_bad_row_is_refused_with_its_line_or_left_out_and_counted(write, bad):
    path = write(row(prompt=1), bad, row(prompt=2))
    with pytest.raises(TraceError, match=rf"trace\.csv line 3: {BAD_ROWS[bad]}") as refused:
        Trace(path).read()
    assert str(refused.value).endswith("; pass --axis skip-bad-rows=on to leave such rows out")
    assert len(str(refused.value)) < 400
    requests = Trace(path, skip_bad_rows=True).read()
    assert requests.prompt_lens.tolist() == [1, 2]
    assert requests.bad_rows == 1


def test_files_that_are_no_trace_are_refused(write, tmp_path):
    def refusal(path, **window):
        with pytest.raises(TraceError) as refused:
            Trace(str(path), **window).read()
        message = str(refused.value)
        assert str(path) in message
        assert "\n" not in message
        return message

    assert "no such file" in refusal(tmp_path / "absent.csv")
    assert "cannot be read" in refusal(tmp_path)
    assert "is empty" in refusal(write(header=""))
    assert "no usable row" in refusal(write())
    assert "no usable row" in refusal(write("bad"), skip_bad_rows=True)
    assert f"line 1: expected the header {HEADER}" in refusal(write(row(), header="a,b,c"))
    empty = refusal(write(row("00"), row("09")), start_seconds=2, duration_seconds=3)
    assert "no request between 2 s and 5 s; the trace covers 0 s to 9 s" in empty


@pytest.mark.parametrize(
    "window",
    [
        {"start_seconds": -1},
        {"start_seconds": float("nan")},
        {"duration_seconds": 0},
        {"time_scale": 0},
        {"max_requests": 0},
    ],
)
def test_a_window_that_cannot_be_is_refused(window):
    with pytest.raises(ValueError, match=next(iter(window))):
        Trace("trace.csv", **window)
