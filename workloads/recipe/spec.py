"""Reading records from a flag's text or a file, and naming what was wrong."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from workloads.files.toml_file import read_toml_table

Record = TypeVar("Record")


def parse_spec(text: str, types: tuple[type[msgspec.Struct], ...], what: str, forms: str) -> Any:
    """The record that ``KIND:VALUE:VALUE`` names, its values in the order of the fields.

    ``types``: the records it may be, told apart by their tags. Raises ValueError with one
    sentence that says ``what`` was asked for and which ``forms`` there are.
    """
    kind, *values = text.strip().split(":")
    by_tag = {str(each.__struct_config__.tag): each for each in types}
    try:
        if kind not in by_tag:
            raise ValueError(f"there is no kind {kind!r}")
        fields = by_tag[kind].__struct_fields__
        if len(values) > len(fields):
            raise ValueError(f"{kind} takes at most {len(fields)} values, not {len(values)}")
        named = dict(zip(fields, values, strict=False))
        return msgspec.convert(named | {"kind": kind}, by_tag[kind], strict=False)
    except (ValueError, msgspec.ValidationError) as error:
        raise ValueError(f"{what} {text!r} cannot be used, {reason(error)}; give {forms}") from None


def read_toml(path: Path, kind: type[Record], what: str) -> Record:
    """A file's record; if it has a ``name`` that the file does not say, that of the file.

    ``what`` it holds, in one word: docs/<what>s.md shows the format. Raises ValueError with one
    sentence that names the file and the place in it.
    """
    try:
        named = {"name": path.stem} if "name" in getattr(kind, "__struct_fields__", ()) else {}
        return msgspec.convert(named | read_toml_table(path), kind)
    except OSError as error:
        raise ValueError(f"{path}: the {what} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: the file is not text; give {_a(what)} in TOML") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {reason(error)}; docs/{what}s.md shows the format") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from None


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def reason(error: Exception) -> str:
    """An error's message with the place in front, where msgspec puts a path behind it."""
    message, _, path = str(error).partition(" - at `$")
    place = path.strip("`.")
    return f"{place}: {message}" if place else message
