"""The inside of a process that is talked to: what it is asked, what it says, what it answers."""

import os
import sys
from typing import Any, TypeVar

import msgspec

_Asked = TypeVar("_Asked")


class Parent:
    """Who has started this process: it asks one JSON document, and is answered one.

    What is printed here goes to the errors: a library's words must not end up in the answer.
    """

    def __init__(self) -> None:
        self._answer = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def asked(self, kind: type[_Asked]) -> _Asked:
        """What it asks, a line of JSON."""
        return msgspec.json.decode(sys.stdin.buffer.readline(), type=kind)

    def hears(self, word: bytes) -> bytes:
        """Tell it a word; the line that it says next, b"" where it is there no more."""
        self._answer.write(word)
        self._answer.flush()
        return sys.stdin.buffer.readline()

    def answer(self, said: Any) -> None:
        """The last thing that it is told, as JSON."""
        with self._answer:
            self._answer.write(msgspec.json.encode(said))

    def talk_over(self, asked: int, said: int, wrong: int) -> None:
        """In a fork: over its own descriptors from now on."""
        for end, own in ((asked, 0), (said, self._answer.fileno()), (wrong, 1), (wrong, 2)):
            os.dup2(end, own)
