"""Whole messages over a socket pair, between two processes that may both be sending."""

import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence

from engines.builtin.wire import Buffer

_HEADER = struct.Struct("<Q")
_CHUNK = 1 << 18
_LOOK_SECONDS = 0.2
_MOST_BUFFERS = 1024
"""Of one `sendmsg`: Linux's limit."""


class ChannelClosedError(ConnectionError):
    """The other end is gone."""


class ByteChannel:
    """A duplex of byte messages.

    Both ends can have more to send than the socket holds. An end that cannot write therefore
    reads meanwhile: without that, two large messages that meet would block each other for good.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._inbox: deque[bytes] = deque()
        self._buffer = bytearray()
        self.num_bytes = 0
        self.while_blocked: Callable[[], None] = _nothing
        """Called now and then while the other end takes nothing in."""

    @staticmethod
    def pair() -> "tuple[ByteChannel, ByteChannel]":
        """Both ends of a new one."""
        here, there = socket.socketpair()
        return ByteChannel(here), ByteChannel(there)

    @property
    def has_message(self) -> bool:
        """Whether `recv` need not wait."""
        return bool(self._inbox)

    def peek(self, count: int) -> bytes:
        """The first bytes of the next message, which is there."""
        return self._inbox[0][:count]

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def send(self, *buffers: Buffer) -> None:
        """Send one message, which the buffers make together; none is copied on this side.

        Raises ChannelClosedError where the other end is gone.
        """
        num_bytes = sum(map(len, buffers))
        left: Sequence[Buffer] = (_HEADER.pack(num_bytes), *buffers)
        num_left = num_bytes + _HEADER.size
        self.num_bytes += num_left
        while num_left:
            try:
                sent = self._socket.sendmsg(left[:_MOST_BUFFERS])
                num_left -= sent
                if num_left:
                    left = _after(left, sent)
            except BlockingIOError:
                readable, writable, _ = select.select(
                    [self._socket], [self._socket], [], _LOOK_SECONDS
                )
                if readable:
                    self.receive()
                elif not writable:
                    self.while_blocked()
            except OSError as error:
                raise ChannelClosedError(str(error)) from error

    def recv(self) -> bytes:
        """Wait for one message. Raises ChannelClosedError where the other end is gone."""
        while not self._inbox:
            select.select([self._socket], [], [])
            self.receive()
        return self._inbox.popleft()

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def receive(self) -> None:
        """Take in what has come. Raises ChannelClosedError where the other end is gone."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosedError(str(error)) from error
        if not data:
            raise ChannelClosedError("closed by the other end")
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _HEADER.size:
            end = _HEADER.size + _HEADER.unpack_from(buffer)[0]
            if len(buffer) < end:
                return
            self._inbox.append(bytes(memoryview(buffer)[_HEADER.size : end]))
            self.num_bytes += end
            del buffer[:end]


def _after(buffers: Sequence[Buffer], num_bytes: int) -> Sequence[Buffer]:
    """What follows the first bytes of several buffers."""
    for index, each in enumerate(buffers):
        if num_bytes < len(each):
            return (memoryview(each)[num_bytes:], *buffers[index + 1 :])
        num_bytes -= len(each)
    return ()


def _nothing() -> None:
    """Where nobody wants to know."""
