"""Pickles of the other end, which is a process of this one's own."""

import pickle
from collections.abc import Sequence
from typing import Any

from engines.builtin.wire import Buffer, WireError


def unpickle(data: Buffer, buffers: Sequence[Buffer] = ()) -> Any:
    """What was pickled, with its buffers out of band. Raises WireError where it cannot be read."""
    try:
        return pickle.loads(data, buffers=buffers)
    except Exception as error:  # of a damaged pickle anything may come
        raise WireError(f"a pickle that cannot be read: {error}") from None
