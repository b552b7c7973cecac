"""What the tracked heap of a process is made of, and what a full pass over it costs: the record.

A full pass follows each object's references twice, to tracked objects and to others ("atoms") as
well, in the order of the collector's list. Its cost is therefore a matter of how many references
there are, of how far their targets are, and of how far in memory neighbours in the list are.
"""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

CENSUS_SCHEMA = "gcbench.census/1"

SERVED_VLLM = Path(__file__).with_name("censuses") / "vllm-0.32.0.json"
"""The one that comes with gcbench, and that the ballast follows."""

_Share = Annotated[float, Meta(ge=0, le=1)]
_Mean = Annotated[float, Meta(ge=0)]


class Within(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cumulative: the share that lies within a bound, whose unit its list states."""

    bound: Annotated[int, Meta(gt=0)]
    share: _Share


class FanOut(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Objects of one kind with about equally many tracked references.

    ``share`` is of all objects; ``references`` (to tracked objects), ``atoms`` (to others) and
    ``size_bytes`` (`sys.getsizeof`) are means per object.
    """

    share: _Share
    references: _Mean
    atoms: _Mean
    size_bytes: _Mean


class ObjectKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type, or the rare ones together, in ascending fan-out; means as in `FanOut`."""

    type: str
    share: _Share
    references: _Mean
    atoms: _Mean
    size_bytes: _Mean
    fan_out: Annotated[tuple[FanOut, ...], Meta(min_length=1)]


class Atoms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is referred to and not tracked: distinct ones, where references go, mean size.

    ``popular`` is the share of the references to the ``bound`` atoms most referred to;
    ``type_share`` the share of references by the atom's type.
    """

    distinct: int
    popular: tuple[Within, ...]
    size_bytes: _Mean
    type_share: dict[str, _Share]


class Census(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A heap of ``objects`` tracked objects.

    ``popular``: share of the tracked references that goes to the ``bound`` objects most referred
    to. ``distances``: of the others, the share whose target is within ``bound`` objects in the
    collector's list; ``forward`` the share whose target comes later. ``neighbours``: the share of
    neighbours in the list whose addresses are within ``bound`` bytes; ``same_kind`` the share that
    are of one type. ``referenced_once``: the share of the objects with exactly one reference.
    """

    source: str
    python: str
    vllm: str
    objects: Annotated[int, Meta(gt=0)]
    full_pass_ns_per_object: _Mean
    kinds: Annotated[tuple[ObjectKind, ...], Meta(min_length=1)]
    popular: tuple[Within, ...]
    distances: tuple[Within, ...]
    forward: _Share
    referenced_once: _Share
    neighbours: tuple[Within, ...]
    same_kind: _Share
    atoms: Atoms
    schema: str = CENSUS_SCHEMA


def load_census(path: Path = SERVED_VLLM) -> Census:
    """The census in a file.

    Raises ValueError with one sentence that names the file and the place in it.
    """
    try:
        census = msgspec.json.decode(path.read_bytes(), type=Census)
    except OSError as error:
        raise ValueError(f"{path}: the census cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: not a census: {error}; take it again") from None
    if census.schema != CENSUS_SCHEMA:
        raise ValueError(
            f"{path}: schema is {census.schema!r}, not {CENSUS_SCHEMA!r}; take it again"
        )
    whole = sum(fan_out.share for kind in census.kinds for fan_out in kind.fan_out)
    if abs(whole - 1) > 0.01:
        raise ValueError(f"{path}: the kinds' shares add up to {whole:.3f}, not 1; take it again")
    return census
