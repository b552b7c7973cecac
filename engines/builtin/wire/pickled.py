"""Pickle, protocol 5: what vLLM's executor puts in its shared-memory ring."""

import pickle
from typing import Any


class Pickled:
    """Each message whole, whatever changed since the last."""

    def encode(self, message: Any) -> bytes:
        """`pickle.dumps`."""
        return pickle.dumps(message, protocol=5)

    def decode(self, data: bytes) -> Any:
        """`pickle.loads`."""
        return pickle.loads(data)
