"""What a trial's requests were answered, as hashes; the answers themselves can then go."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.trial.client import Client


class Hashes(NamedTuple):
    """SHA-256 over all requests; ``text`` is "" where no text was asked for."""

    tokens: str
    text: str
    finish: str
    lengths: str


class Answers:
    """A client's answers, hashed when they are first asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._hashes: Hashes | None = None

    def let_go(self) -> Hashes:
        """Their hashes; the client then holds none of them any more."""
        if self._hashes is None:
            client, requests = self._client, self._client.recorder.requests
            self._hashes = Hashes(
                arrays_sha256(client.tokens),
                texts_sha256(client.texts),
                arrays_sha256([requests.finish_reason]),
                arrays_sha256([requests.num_tokens]),
            )
            client.forget_answers()
        return self._hashes


def arrays_sha256(arrays: Sequence[Any]) -> str:
    """Over each array of whole numbers and its length; None is left out."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.int64(len(array)).tobytes())
            digest.update(np.ascontiguousarray(array, np.int32).tobytes())
    return digest.hexdigest()


def texts_sha256(texts: Sequence[str | None]) -> str:
    """Over each text and where it ends; "" where no text was asked for."""
    digest = hashlib.sha256()
    for text in texts:
        if text is not None:
            encoded = text.encode(errors="surrogatepass")
            digest.update(np.int64(len(encoded)).tobytes())
            digest.update(encoded)
    return digest.hexdigest() if texts else ""
