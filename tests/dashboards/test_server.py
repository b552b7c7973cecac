"""The server of a site: for this machine's browsers, whatever else speaks to it."""

import socket
import struct
import threading
from http.client import HTTPConnection

import pytest
from processes import HANG_SECONDS

from dashboards.server import listening, serve_until_interrupted


@pytest.fixture
def port(tmp_path):
    (tmp_path / "index.html").write_text("x" * 5_000_000)
    with listening(0) as server:
        thread = threading.Thread(target=serve_until_interrupted, args=(server, tmp_path))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def status(port: int, *hosts: str) -> int:
    """What a request with these Host headers gets."""
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG_SECONDS)
    connection.putrequest("GET", "/index.html", skip_host=True)
    for host in hosts:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_only_this_machines_own_names_are_answered(port):
    for host in ("127.0.0.1", "localhost", f"127.0.0.1:{port}", "LOCALHOST:9000"):
        assert status(port, host) == 200, host
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "",
        "localhost@evil.example",
        "[::1",
        "localhost.evil.example",
    ):
        assert status(port, host) == 421, host
    assert status(port) == 421
    assert status(port, "localhost", "evil.example") == 421


def test_a_client_that_leaves_in_the_middle_leaves_no_traceback(port, capfd):
    before = threading.enumerate()
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.recv(10)
            # Ends with a reset, not in order.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert status(port, "localhost") == 200
    for thread in set(threading.enumerate()) - set(before):
        thread.join(timeout=HANG_SECONDS)
    assert capfd.readouterr().err == ""
