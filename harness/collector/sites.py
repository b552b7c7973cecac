"""The lines that make the objects which collections find, as a trial answers them."""

import msgspec


class AllocationSite(msgspec.Struct, frozen=True, kw_only=True):
    """A line that makes objects of a type which the collector tracks.

    ``share``: of the young objects that a collection finds, its part, the mean over collections;
    ``share_error``: that mean's standard error. ``pause_share``: the same weighted by how long each
    collection took. ``promoted``: objects that reached the oldest generation. ``retained``: objects
    that were there when the last step had ended. ``path``: the commonest call path of its objects,
    the outermost call first. Files are relative to the folder of the path from which they were
    imported; "" and line 0 is what nobody can place.
    """

    file: str
    line: int
    type: str
    share: float
    share_error: float
    pause_share: float
    promoted: int
    retained: int
    path: list[tuple[str, int]]


class CollectionSites(msgspec.Struct, frozen=True, kw_only=True):
    """The sites of a window, those with the largest share first.

    ``collections`` by generation; ``young``: objects that all of them found young together.
    """

    collections: tuple[int, int, int]
    young: int
    sites: list[AllocationSite]
