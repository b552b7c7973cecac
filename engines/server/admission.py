"""Whether a request may begin, and under which numbers its prompts run."""

from aiohttp import web

from engines.server.engine_client import EngineClient
from engines.server.errors import ApiError

REQUEST_INDEX_HEADER = "X-Request-Index"
_LARGEST = 2**53 - 1


class Admission:
    """``most`` requests are open at once; when ``is_draining`` none is let in."""

    def __init__(self, client: EngineClient, most: int) -> None:
        self._client = client
        self._most = most
        self._next = 0
        self.is_draining = False

    async def numbers(self, request: web.Request, count: int) -> list[int]:
        """Numbers for ``count`` prompts: those from the one that the client names, else the next.

        To be added before anything is awaited. Raises ApiError 400 for numbers that cannot be
        given, 429 where there is no room, 503 where the server stops or its engine has died.
        """
        self._check(count)
        asked = request.headers.get(REQUEST_INDEX_HEADER)
        if asked is None:
            return [self._take_next() for _ in range(count)]
        first = _parse(asked)
        numbers = list(range(first, first + count))
        while any(map(self._client.knows, numbers)):
            if taken := [each for each in numbers if self._client.is_open(each)]:
                raise ApiError(
                    400, f"{REQUEST_INDEX_HEADER} {taken[0]}: a request of this number is running"
                )
            await self._client.gone()  # it has ended, and the engine is about to forget it
            self._check(count)
        return numbers

    def _check(self, count: int) -> None:
        if self._client.failure:
            raise ApiError(503, f"the engine has died: {self._client.failure}")
        if self.is_draining:
            raise ApiError(503, "the server is stopping")
        now = self._client.num_open
        if now + count > self._most:
            raise ApiError(
                429,
                f"{now} requests are running or waiting, and {self._most} is the most; try "
                "again later",
            )

    def _take_next(self) -> int:
        while self._client.knows(self._next):
            self._next += 1
        self._next += 1
        return self._next - 1


def _parse(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _LARGEST:
        return int(text)
    raise ApiError(400, f"{REQUEST_INDEX_HEADER}: must be a whole number from 0 to {_LARGEST}")
