"""Files that are there whole or not at all, and read only in the version that wrote them."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from workloads.files.regular_file import open_regular, read_regular
from workloads.files.whole_file import replacing

Versioned = TypeVar("Versioned")

ROWS_SCHEMA = "gcbench.rows/1"
_MOST_BYTES_OF_ROWS = 2**30
_MOST_VALUES = 100_000_000
"""Of all columns. A few kilobytes of Parquet can stand for more than any memory holds."""


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


def write_output(path: Path | str, content: bytes, option: str) -> None:
    """Write ``content`` to the file that a flag names: what is no file is written into, and what
    a link leads to is replaced; "-" is standard output. Raises StoreError.
    """
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)  # as it is, whatever a terminal's encoding
        sys.stdout.buffer.flush()
        return
    path = Path(path)
    if path.exists() and not path.is_file():  # a pipe or a device: a rename would remove it
        with writing(path, option):
            path.write_bytes(content)
    else:
        write_whole(Path(os.path.realpath(path)), content, option)


def indented(value: Any) -> bytes:
    """``value`` as JSON for people and programs: UTF-8, two spaces, ends with a line end."""
    return msgspec.json.format(msgspec.json.encode(value)) + b"\n"


def write_json(target: Path | str, value: Any) -> None:
    """Write ``value`` as indented JSON, as `write_output` does. Raises StoreError."""
    write_output(target, indented(value), "--json FILE")


class _Versioned(msgspec.Struct):
    schema: str = ""


def schema_of(path: Path) -> str:
    """The schema that a JSON record names, "" where it names none. Raises StoreError."""
    with _reading(path):
        return msgspec.json.decode(read_regular(path), type=_Versioned).schema


def decode_versioned(path: Path, type_: type[Versioned], schema: str) -> Versioned:
    """Read a JSON record whose ``schema`` field must be ``schema``. Raises StoreError."""
    found = schema_of(path)
    if found != schema:
        raise StoreError(f"{path} has schema {found!r}, this gcbench reads {schema!r}")
    with _reading(path):
        return msgspec.json.decode(read_regular(path), type=type_)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    """Read what `write_rows` wrote: numbers, none of them missing. Raises StoreError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_regular(path, _MOST_BYTES_OF_ROWS) as file:
            parquet = pq.ParquetFile(file)
            if wrong := _no_rows(parquet):
                raise StoreError(f"{path} {wrong}")
            table = parquet.read()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except pa.ArrowException as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, column in columns.items():
        if column.null_count:
            raise StoreError(f"{path} lacks values in column {name!r}")
    return {name: column.to_numpy() for name, column in columns.items()}


def _no_rows(parquet: Any) -> str:
    """What is wrong with a Parquet file, of what its footer says; "" where nothing is."""
    import pyarrow as pa

    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    schema = parquet.schema_arrow
    found = (schema.metadata or {}).get(b"schema", b"").decode(errors="replace")
    if found != ROWS_SCHEMA:
        return f"has schema {found!r}, this gcbench reads {ROWS_SCHEMA!r}"
    if (values := parquet.metadata.num_rows * len(schema)) > _MOST_VALUES:
        return f"holds {values:,} values; {_MOST_VALUES:,} are the most that is read"
    for field in schema:
        if not any(is_(field.type) for is_ in numbers):
            return f"has column {field.name!r} of {field.type}, which are no numbers"
    return ""
