"""Arrays and a JSON header in one ``.npz`` file, written whole or not at all."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workloads.files.regular_file import read_regular
from workloads.files.whole_file import replacing

_HEADER = "header"
_MOST_BYTES = 2**31


def write_archive(
    path: Path, arrays: Mapping[str, NDArray[Any]], header: Mapping[str, object]
) -> None:
    """Write ``arrays`` and ``header`` to ``path``, replacing what is there. Raises OSError."""
    members: dict[str, Any] = {
        _HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8),
        **arrays,
    }
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **members)


def read_archive(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the header of ``path``. Raises ValueError where it is not such a file."""
    try:
        content = io.BytesIO(read_regular(path, _MOST_BYTES))
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be read: {error.strerror}") from None
    try:
        with np.load(content, allow_pickle=False) as archive:
            if any(member.compress_type for member in archive.zip.infolist()):
                raise ValueError("not as `write_archive` writes it: a bomb, maybe")
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop(_HEADER).tobytes())
    # zipfile and NumPy's header reader answer damage with a dozen kinds of exception
    except Exception:
        raise ValueError(_refusal(path)) from None
    if not isinstance(header, dict):
        raise ValueError(_refusal(path))
    return arrays, header


def content_sha256(arrays: Mapping[str, NDArray[Any]], header: Mapping[str, object]) -> str:
    """SHA-256 over a JSON text of ``header``, shapes and dtypes, then the arrays' bytes.

    Little-endian and sorted by name, so the same on every machine.
    """
    portable = {
        name: array.astype(array.dtype.newbyteorder("<")) for name, array in sorted(arrays.items())
    }
    shapes = {name: [array.dtype.str, array.shape] for name, array in portable.items()}
    digest = hashlib.sha256(json.dumps([header, shapes], sort_keys=True).encode())
    for array in portable.values():
        digest.update(array.tobytes())
    return digest.hexdigest()


def _refusal(path: Path) -> str:
    return f"{path}: the file is damaged or not a schedule; delete it and make it anew"
