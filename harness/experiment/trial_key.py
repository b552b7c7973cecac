"""A trial's key: its place in its experiment and its cell, by which its outcome is kept."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from harness.axes import Cell
from harness.trial.spec import Mode


@dataclass(frozen=True, slots=True, order=True)
class TrialKey:
    """A trial's place in its experiment; as text, the name of its file."""

    round: int
    index: int
    cell_hash: str
    mode: Mode

    def __str__(self) -> str:
        return f"{self.round:03}-{self.index:03}-{self.cell_hash}-{self.mode}"


def canonical_sha256(value: Any) -> str:
    """Over its JSON, with keys in order."""
    return sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Cell)}


def trial_key(round_: int, index: int, cell: Cell, mode: Mode) -> TrialKey:
    """The key of ``cell`` in ``mode`` as the ``index``-th trial of a round.

    An axis at its default is not hashed: a later version's new axis leaves the keys as they are.
    """
    said = {
        name: value
        for name, default in _DEFAULTS.items()
        if (value := getattr(cell, name)) != default
    }
    return TrialKey(round_, index, canonical_sha256(said)[:8], mode)
