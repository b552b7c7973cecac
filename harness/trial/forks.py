"""Forks of one prepared interpreter: each runs a trial, and this process tells of its end."""

import os
from typing import IO

import msgspec

from harness.trial.spec import ForkEnd, fork_files


def in_forks(count: int, at_once: int, answer: IO[bytes]) -> int | None:
    """Fork ``count`` times; return a fork's number in it, and None here once all have ended.

    In a fork ``answer`` and standard error are the files that `fork_files` names. Here a `ForkEnd`
    goes to ``answer`` for each, a line of JSON. Nothing that is made here lives on in a fork: its
    heap is that of the process it is a copy of.
    """
    running: dict[int, int] = {}
    begun = 0
    while begun < count or running:
        if begun < count and len(running) < at_once:
            pid = os.fork()
            if not pid:
                _write_to_files(begun, answer.fileno())
                return begun
            running[pid] = begun
            begun += 1
            continue
        pid, status = os.wait()
        if pid in running:  # else a library's
            ended = ForkEnd(index=running.pop(pid), status=os.waitstatus_to_exitcode(status))
            answer.write(msgspec.json.encode(ended) + b"\n")
            answer.flush()
    return None


def _write_to_files(index: int, answer: int) -> None:
    said, errors = fork_files(os.environ["TMPDIR"], index)
    for path, descriptors in ((said, [answer]), (errors, [1, 2])):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)
