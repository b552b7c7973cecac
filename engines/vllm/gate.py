"""Lets the engine core end a step for each that its reader asks for, so that none piles up."""

import os

import numpy as np


class Gate:
    """A named pipe with a byte for each step that may end; nobody spins while there is none.

    The reader of outputs makes it, the worker waits at it. Once the reader has gone it is open.
    Beside it lies how often the worker has come to it.
    """

    def __init__(self, path: str, *, create: bool = False) -> None:
        if create:
            os.mkfifo(path, 0o600)
        # Opened for both, it waits for no other end; the worker's must see when that is gone.
        self._pipe = os.open(path, os.O_RDWR if create else os.O_RDONLY)
        self._arrivals = np.memmap(f"{path}-arrivals", np.int64, "w+" if create else "r+", shape=1)
        self._num_opened = 0

    def open_once(self) -> None:
        """Let a step end."""
        self._num_opened += 1
        os.write(self._pipe, b"\0")

    def is_waited_at(self) -> bool:
        """Whether the worker stands before it."""
        return int(self._arrivals[0]) > self._num_opened

    def wait(self) -> None:
        """Until a step may end."""
        self._arrivals[0] += 1
        os.read(self._pipe, 1)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._pipe)
