"""Files that are there whole or not at all, and read only in the version that wrote them."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.whole_file import replacing

T = TypeVar("T")

ROWS_SCHEMA = "gcbench.rows/1"


class StoreError(RuntimeError):
    """Results cannot be written or read, and why, in one sentence."""


@contextmanager
def writing(path: Path, option: str = "--output DIR") -> Iterator[None]:
    """Turn the system's refusal to write to ``path`` into a StoreError that names the option."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"results cannot be written to {path}: {reason}; name another place with {option}"
        ) from error


def write_whole(path: Path, content: bytes, option: str = "--output DIR") -> None:
    """Write ``content`` to ``path``, whole or not at all. Raises StoreError."""
    with writing(path, option), replacing(path) as temporary:
        temporary.write_bytes(content)


def indented(value: Any) -> bytes:
    """``value`` as JSON for people and programs: UTF-8, two spaces, ends with a line end."""
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


def write_json(target: Path | str, value: Any) -> None:
    """Write ``value`` as indented JSON to a file, or to standard output where it is "-".

    Raises StoreError.
    """
    if str(target) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(indented(value))  # as UTF-8, whatever a terminal's encoding
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    if path.exists() and not path.is_file():  # a pipe or a device: a rename would remove it
        with writing(path, "--json FILE"):
            path.write_bytes(indented(value))
    else:
        write_whole(path.resolve(), indented(value), "--json FILE")


class _Versioned(msgspec.Struct):
    schema: str = ""


def schema_of(path: Path) -> str:
    """The schema that a JSON record names, "" where it names none. Raises StoreError."""
    with _reading(path):
        return msgspec.json.decode(path.read_bytes(), type=_Versioned).schema


def decode_versioned(path: Path, type_: type[T], schema: str) -> T:
    """Read a JSON record whose ``schema`` field must be ``schema``. Raises StoreError."""
    found = schema_of(path)
    if found != schema:
        raise StoreError(f"{path} has schema {found!r}, this gcbench reads {schema!r}")
    with _reading(path):
        return msgspec.json.decode(path.read_bytes(), type=type_)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error


def set_aside(path: Path) -> Path:
    """Rename a file to the first free ``NAME.unreadable[.N]`` and return the new path."""
    aside, suffix = path.with_name(f"{path.name}.unreadable"), 2
    while aside.exists():
        aside, suffix = path.with_name(f"{path.name}.unreadable.{suffix}"), suffix + 1
    with writing(path.parent):
        return path.rename(aside)


def write_rows(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write equally long one-dimensional arrays as the columns of a Parquet file (zstd).

    Raises ValueError where the arrays do not make a table, StoreError where it cannot be
    written. Imports pyarrow when called: not for a measured window.
    """
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    shapes = {name: np.shape(column) for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"columns of {path} must be 1-D and equally long; they are {shapes}")
    table = pa.table(dict(columns)).replace_schema_metadata({"schema": ROWS_SCHEMA})
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")


def read_rows(path: Path) -> dict[str, NDArray[Any]]:
    """Read what `write_rows` wrote. Raises StoreError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    found = (table.schema.metadata or {}).get(b"schema", b"").decode()
    if found != ROWS_SCHEMA:
        raise StoreError(f"{path} has schema {found!r}, this gcbench reads {ROWS_SCHEMA!r}")
    return {name: table[name].to_numpy() for name in table.column_names}
