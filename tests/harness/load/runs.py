"""``gcbench load`` against a scripted server, in this process, and what it left."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.cli.main import main
from harness.load.result import LoadResult


class Ran(NamedTuple):
    status: int
    result: LoadResult
    folder: Path


def load(url: str, folder: Path, *flags: str, **options: Any) -> Ran:
    """``options`` as flags: num_requests=3 is --num-requests 3."""
    given = [
        word
        for name, value in options.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    path = folder / "result.json"
    status = main(
        [
            "load",
            url,
            *given,
            *flags,
            "--json",
            str(path),
            "--output",
            str(folder / "runs"),
            "--quiet",
        ]
    )
    result = msgspec.json.decode(path.read_bytes(), type=LoadResult)
    return Ran(status, result, sorted((folder / "runs").iterdir())[-1])
