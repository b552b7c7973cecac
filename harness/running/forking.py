"""Forks of this prepared interpreter: each talks over pipes of its own, and its end is told."""

import os
import socket
from collections.abc import Iterable

import msgspec

from harness.running.inside import Parent


class ForkNews(msgspec.Struct, frozen=True, kw_only=True):
    """The ``index``-th fork has begun, or with ``status`` has ended."""

    index: int
    pid: int
    status: int | None = None


def in_forks(count: int, at_once: int, news: int, parent: Parent) -> int | None:
    """Fork ``count`` times, ``at_once`` side by side; a fork's number in it, None here at the end.

    ``news``: descriptor of a socket. A `ForkNews`, a line of JSON, says when one has begun, with
    the parent's ends of its pipes, and when it has ended. Nothing that is made here lives on in a
    fork: its heap is that of the process it is a copy of.
    """
    told = socket.socket(fileno=news)
    running: dict[int, int] = {}
    index = 0
    while index < count or running:
        if index < count and len(running) < at_once:
            (asked, ask), (hear, said), (read, wrong) = os.pipe(), os.pipe(), os.pipe()
            pid = os.fork()
            if not pid:
                parent.talk_over(asked, said, wrong)
                told.close()
                _close((asked, ask, hear, said, read, wrong))
                return index
            running[pid] = index
            line = msgspec.json.encode(ForkNews(index=index, pid=pid)) + b"\n"
            socket.send_fds(told, [line], [ask, hear, read])
            _close((asked, ask, hear, said, read, wrong))
            index += 1
            continue
        pid, status = os.wait()
        if pid in running:  # else a library's
            ended = ForkNews(
                index=running.pop(pid), pid=pid, status=os.waitstatus_to_exitcode(status)
            )
            told.sendall(msgspec.json.encode(ended) + b"\n")
    return None


def _close(descriptors: Iterable[int]) -> None:
    for each in descriptors:
        os.close(each)
