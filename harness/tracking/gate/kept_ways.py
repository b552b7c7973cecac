"""Which functions each of an engine's ways ran when one was last tried: where to look first."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.trial.output_hashes import QualifiedName
from workloads.files.whole_file import replacing


class KeptWays(NamedTuple):
    """By the flags of a way, in a file; what it says is a guess, for another commit has run."""

    path: Path

    def load(self) -> dict[str, set[QualifiedName]]:
        """Nothing where nothing is kept."""
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, set[QualifiedName]])
        return {}

    def save(self, tried: Mapping[str, Iterable[QualifiedName]]) -> None:
        """Keep what has run, where anything can be written."""
        kept = self.load() | {way: set(ran) for way, ran in tried.items()}
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as temporary:
                temporary.write_bytes(msgspec.json.encode(kept, order="sorted"))
