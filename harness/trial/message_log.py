"""Messages of one direction between scheduler and workers, in a file until they are read."""

from itertools import pairwise
from tempfile import TemporaryFile


class MessageLog:
    """Takes each as it crosses; they may be many and large, so memory is not where they go."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - `close` does
        self._ends = [0]

    def append(self, message: bytes) -> None:
        """Keep one more. Raises OSError where there is no room for it."""
        self._file.write(message)
        self._ends.append(self._ends[-1] + len(message))

    def sizes(self) -> list[int]:
        """Bytes of each, in the order in which they crossed."""
        return [end - begin for begin, end in pairwise(self._ends)]

    def message(self, number: int) -> bytes:
        """One of them, from 0 on."""
        begin, end = self._ends[number : number + 2]
        self._file.seek(begin)
        data = self._file.read(end - begin)
        self._file.seek(0, 2)
        return data

    def close(self) -> None:
        """Forget them."""
        self._file.close()
