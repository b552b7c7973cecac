"""What crosses between the scheduler and a worker process: a byte for the kind, then the rest."""

from typing import NamedTuple

from engines.protocol import EngineConfig

STEP, RPC, ERROR, REFUSED, LOST = b"S", b"R", b"E", b"V", b"L"
"""A step or its tokens; a call or its answer; the sentence of an error that ends the process, and
of a ValueError that does not; how many steps a rank has read that needs the next one whole."""


class Setup(NamedTuple):
    """A worker process's first message. ``rendezvous``: a file by which the ranks find together."""

    config: EngineConfig
    rank: int
    rendezvous: str
