"""When an engine's releases came out, and what is known to have changed in their host path."""

import datetime
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

FILE = Path(__file__).with_name("vllm_releases.toml")
_FILES = (FILE, FILE.with_name("sglang_releases.toml"))

Concern = Literal[
    "garbage collection", "output tokens", "serialisation", "scheduling", "async output"
]


class KnownRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A final release. ``date``: the day of its first file on the package index."""

    version: str
    date: datetime.date


class KnownChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pull request. ``release``: the first whose Python files have it.

    ``tried``: what it alone does to the counts, "" where that was not measured.
    """

    pull: int
    release: str
    concerns: Concern
    words: str
    tried: str = ""

    @property
    def url(self) -> str:
        """Where it was discussed."""
        return f"https://github.com/vllm-project/vllm/pull/{self.pull}"


class KnownReleases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of what some engines run, called ``name``: releases and changes, in the order of versions.

    ``host_path``: in words what of it runs here.
    """

    name: str
    engines: list[str]
    host_path: str
    release: list[KnownRelease]
    change: list[KnownChange]

    def day(self, version: str) -> str:
        """The day of a release, as 2026-11-02; "" where it is not known."""
        return next((str(each.date) for each in self.release if each.version == version), "")


def known_releases(engine: str) -> KnownReleases:
    """What a file beside this module says of this engine; of one that none has its name alone."""
    of = next((each for each in _load() if engine in each.engines), None)
    return of or KnownReleases(engine, [engine], "", [], [])


@cache
def _load() -> list[KnownReleases]:
    texts = [tomllib.loads(file.read_text(encoding="utf-8")) for file in _FILES]
    return msgspec.convert(texts, list[KnownReleases])
