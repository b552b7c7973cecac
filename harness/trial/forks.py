"""Forks of one prepared interpreter: each runs a trial, and this process tells of its end."""

import os
from collections.abc import Callable, Sequence
from typing import IO

import msgspec

from harness.trial.spec import Channel, ForkNews, fork_files


def in_forks(count: int, at_once: int, answer: IO[bytes]) -> int | None:
    """Fork ``count`` times; return a fork's number in it, and None here once all have ended.

    In a fork ``answer`` and standard error are the files that `fork_files` names. Nothing that is
    made here lives on in a fork: its heap is that of the process it is a copy of.
    """
    return _fork_each(count, at_once, answer, lambda index: _write_to_files(index, answer.fileno()))


def in_talking_forks(channels: Sequence[Channel], answer: IO[bytes]) -> int | None:
    """As `in_forks`, all of them at once; a fork's standard streams and ``answer`` are its channel.

    Nobody else holds the channels' ends: each is closed when its fork has ended.
    """
    return _fork_each(
        len(channels),
        len(channels),
        answer,
        begin=lambda index: _talk_over(channels[index], channels, answer.fileno()),
        begun=lambda index: _close(channels[index]),
    )


def _fork_each(
    count: int,
    at_once: int,
    answer: IO[bytes],
    begin: Callable[[int], None],
    begun: Callable[[int], None] = lambda _: None,
) -> int | None:
    """Fork, and tell of each one's beginning and end by a `ForkNews`, a line of JSON in ``answer``.

    ``begin`` is called in the fork, ``begun`` here.
    """

    def tell(news: ForkNews) -> None:
        answer.write(msgspec.json.encode(news) + b"\n")
        answer.flush()

    running: dict[int, int] = {}
    index = 0
    while index < count or running:
        if index < count and len(running) < at_once:
            pid = os.fork()
            if not pid:
                begin(index)
                return index
            begun(index)
            running[pid] = index
            tell(ForkNews(index=index, pid=pid))
            index += 1
            continue
        pid, status = os.wait()
        if pid in running:  # else a library's
            ended = os.waitstatus_to_exitcode(status)
            tell(ForkNews(index=running.pop(pid), pid=pid, status=ended))
    return None


def _write_to_files(index: int, answer: int) -> None:
    said, errors = fork_files(os.environ["TMPDIR"], index)
    for path, descriptors in ((said, [answer]), (errors, [1, 2])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)


def _talk_over(own: Channel, channels: Sequence[Channel], answer: int) -> None:
    for end, descriptors in zip(own, ([0], [answer], [1, 2]), strict=True):
        for descriptor in descriptors:
            os.dup2(end, descriptor)
    # Those of forks before have been closed.
    for channel in channels[channels.index(own) :]:
        _close(channel)


def _close(channel: Channel) -> None:
    for end in channel:
        os.close(end)
