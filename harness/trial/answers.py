"""What a trial's requests were answered, as hashes; the answers themselves can then go."""

import hashlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from engines.protocol import Int32Array
from harness.trial.client import TrialClient


class Answers:
    """A client's answers, as SHA-256 over all requests once they are let go.

    ``text`` is "" where no text was asked for.
    """

    tokens = text = finish = lengths = ""

    def __init__(self, client: TrialClient) -> None:
        self._client: TrialClient | None = client

    @property
    def held_tokens(self) -> Sequence[Int32Array | None]:
        """Each request's, as the engine gave them at its end; none once they are let go of."""
        return [] if self._client is None else self._client.tokens

    def let_go(self) -> Self:
        """These, hashed; the client then holds none of them any more."""
        client, self._client = self._client, None
        if client is None:
            return self
        self.tokens = arrays_sha256(client.tokens)
        self.text = texts_sha256(client.texts)
        self.finish = arrays_sha256([client.recorder.requests.finish_reason])
        self.lengths = arrays_sha256([client.recorder.requests.num_tokens])
        client.forget_answers()
        return self


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
