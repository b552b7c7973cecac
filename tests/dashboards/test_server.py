"""The server of a site: for this machine's browsers, whatever else speaks to it."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from processes import HANG_SECONDS, until

from dashboards import server


@contextmanager
def site_of(folder: Path) -> Iterator[int]:
    """The port at which it is served."""
    (folder / "index.html").write_text("x" * 5_000_000)
    with server.listening(0) as listener:
        thread = threading.Thread(target=server.serve_until_interrupted, args=(listener, folder))
        thread.start()
        yield listener.server_address[1]
        listener.shutdown()
        thread.join()


@pytest.fixture
def port(tmp_path):
    with site_of(tmp_path) as port:
        yield port


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


def closed_without_an_answer(port: int, *pieces: bytes) -> bool:
    with socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as client:
        try:
            for piece in pieces:
                client.sendall(piece)
            return client.recv(1) == b""
        except ConnectionError:
            return True


@pytest.mark.parametrize(
    "path", ["/a%00b", "/a\0b", "/link", "/folder/hosts", "/loop", "/" + "a" * 5_000]
)
def test_what_is_no_file_of_the_site_is_not_there(path, port, tmp_path, capfd):
    (tmp_path / "link").symlink_to("/etc/hosts")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "loop").symlink_to("loop")
    with socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as client:
        client.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        assert client.makefile("rb").readline().split()[1] == b"404"
    assert capfd.readouterr().err == ""


def first_line(port: int) -> bytes:
    """Of the answer; one who is refused has it without asking, and then perhaps a reset."""
    with (
        socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as client,
        suppress(ConnectionError),
    ):
        client.send(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return client.makefile("rb").readline()
    return b""


def is_refused(client: socket.socket, byte: bytes) -> bool:
    try:
        client.send(byte)
    except ConnectionError:
        return True
    return False


def test_a_head_that_does_not_come_in_time_is_waited_for_no_longer(monkeypatch, port, capfd):
    """Whatever each of its bytes does in time."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    assert closed_without_an_answer(port)
    assert closed_without_an_answer(port, b"GET / HTTP/1.0\r\nHost: local")
    with socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as client:
        until(lambda: is_refused(client, b"G"))
    assert status(port, "localhost") == 200
    assert capfd.readouterr().err == ""


def test_beyond_so_many_connections_another_is_told_so_and_soon_answered(monkeypatch, tmp_path):
    """Where all of them are being answered."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with site_of(tmp_path) as port:
        held = [socket.create_connection(("127.0.0.1", port), HANG_SECONDS) for _ in range(3)]
        for each in held:
            each.sendall(b"GET /index.html HTTP/1.0\r\nHost: localhost\r\n\r\n")
            assert each.recv(1) == b"H"
        until(lambda: first_line(port) == b"HTTP/1.0 503 Service Unavailable\r\n")
        for each in held:
            each.close()
        until(lambda: first_line(port) == b"HTTP/1.0 200 OK\r\n")


def test_whoever_asks_has_the_place_of_one_who_has_long_said_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(server, "HEAD_SECONDS", 10 * HANG_SECONDS)
    with site_of(tmp_path) as port:
        silent = [socket.create_connection(("127.0.0.1", port), HANG_SECONDS) for _ in range(3)]
        silent[0].sendall(b"GET / HTTP/1.0\r\nHost: local")
        for _ in range(2):
            assert first_line(port) == b"HTTP/1.0 200 OK\r\n"
        assert silent[0].recv(1) == b""
        for each in silent:
            each.close()


def answer(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), HANG_SECONDS) as client:
        client.sendall(request)
        return client.makefile("rb").read()


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET http://127.0.0.1/small.html HTTP/1.0", b"200"),
        (b"GET http://evil.example/small.html HTTP/1.0", b"421"),
        (b"POST /small.html HTTP/1.0", b"405"),
        (b"BREW /small.html HTTP/1.0", b"405"),
        (b"garbage", b"400"),
        (b"PRI * HTTP/2.0", b"505"),
    ],
)
def test_whatever_is_asked_is_answered_in_http_and_framed_by_nobody(
    request_line, status, port, tmp_path
):
    (tmp_path / "small.html").write_text("here")
    head, _, body = answer(port, request_line + b"\r\nHost: localhost\r\n\r\n").partition(
        b"\r\n\r\n"
    )
    assert head.split()[:2] == [b"HTTP/1.0", status]
    assert b"\r\nAllow: GET, HEAD" in head
    assert b"\r\nX-Content-Type-Options: nosniff" in head
    assert b"frame-ancestors 'none'" in head
    assert b"Python" not in head
    if status == b"200":
        assert b"\r\nContent-type: text/html; charset=utf-8" in head
        assert body == b"here"
