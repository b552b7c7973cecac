"""A line for each request, whatever it was, and none that a client could make up."""

import asyncio
import json
from pathlib import Path

import pytest
from served import JSON, NULL, Served, raw, serving

FIELDS = {"time", "client", "method", "path", "status", "bytes", "seconds"}


def lines(path: Path) -> list[dict]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(each.keys() == FIELDS and each["seconds"] >= 0 for each in found)
    return found


async def sent(served: Served, data: bytes) -> bytes:
    """All that comes back where these bytes are all that is sent."""
    reader, writer = await raw(served, data)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.slow
def test_each_request_has_a_line_in_the_order_in_which_they_ended(tmp_path):
    log = tmp_path / "access"
    with serving(*NULL, "--axis", f"access-log={log}") as served:
        whole = served.complete(max_tokens=2)
        streamed = served.complete(max_tokens=2, stream=True)
        served.ask("POST", "/v1/completions", b"{", JSON)
        served.ask("GET", '/no"}%0A{"status":200}?a=b%0D%0A')
        asyncio.run(sent(served, b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n"))
        asyncio.run(sent(served, b"no HTTP\r\n\r\n"))
        moved = log.rename(tmp_path / "access.1")  # as logrotate does
        served.ask("GET", "/health")
        assert served.end()[::2] == (0, "")
    found = lines(moved)
    assert [(each["method"], each["path"], each["status"]) for each in found[:5]] == [
        ("POST", "/v1/completions", 200),
        ("POST", "/v1/completions", 200),
        ("POST", "/v1/completions", 400),
        ("GET", '/no"}%0A{"status":200}?a=b%0D%0A', 404),
        ("GET", "/health", 421),
    ]
    for line, answer in zip(found, (whole, streamed), strict=False):
        assert len(answer.body) < line["bytes"] < len(answer.body) + 500  # and the head
    assert [each["status"] for each in found[5:]] == [400]
    assert {each["client"] for each in found} == {"127.0.0.1"}
    assert [each["path"] for each in lines(log)] == ["/health"]


@pytest.mark.slow
def test_a_log_that_cannot_be_written_ends_no_request_and_is_said_once():
    with serving(*NULL, "--axis", "access-log=/dev/full") as served:
        assert [served.ask("GET", "/health").status for _ in range(5)] == [200] * 5
        status, _, err = served.end()
    assert (status, len(err.splitlines())) == (0, 1)
    assert "lines of /dev/full are lost: [Errno 28] No space left on device" in err


def test_a_file_that_cannot_be_made_is_a_sentence(tmp_path):
    says = r"access-log=.*: Is a directory; name a file"
    flags = (*NULL, "--axis", f"access-log={tmp_path}")
    with pytest.raises(AssertionError, match=says), serving(*flags):
        pass
