"""Reading the tagged records of this package from a flag's text and naming what was wrong."""

from typing import Any

import msgspec


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


def reason(error: Exception) -> str:
    """An error's message with the place in front, where msgspec puts a path behind it."""
    message, _, path = str(error).partition(" - at `$")
    place = path.strip("`.")
    return f"{place}: {message}" if place else message
