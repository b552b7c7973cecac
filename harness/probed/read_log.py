"""What `gcbench probe --log` has written, as arrays; the program may still run."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from engines.protocol import Int64Array
from harness.files import StoreError
from harness.probed.log import PROBE_SCHEMA
from workloads.files.regular_file import read_regular

_MOST_BYTES = 2 << 30
_WRITES_ONE = "gcbench probe --log FILE -- COMMAND writes one"


class Collections(NamedTuple):
    """Collections of all processes in the order of the file; arrays ``[num_collections]``.

    All that ended from ``began_ns`` to ``read_ns`` are here, but for those in ``lost``, int64
    ``[num_readings, 2]``: a moment, and how many until then have no moment. ``names`` and
    ``pythons``, their versions, by PID.
    """

    boot_id: str
    began_ns: int
    read_ns: int
    names: dict[int, str]
    pythons: dict[int, str]
    lost: Int64Array
    pid: Int64Array
    start_ns: Int64Array
    duration_ns: Int64Array
    cpu_ns: Int64Array
    generation: Int64Array

    def lost_between(self, begin_ns: int, end_ns: int) -> int:
        """How many had no moment by the first reading after the end, less those before."""
        if not len(self.lost):
            return 0
        moments, counts = self.lost.T
        before = int(np.searchsorted(moments, begin_ns, "right")) - 1
        after = min(int(np.searchsorted(moments, end_ns)), len(moments) - 1)
        return int(counts[after]) - (int(counts[before]) if before >= 0 else 0)


class _Line(msgspec.Struct, gc=False):
    schema: str = ""
    boot_id: str = ""
    began_ns: int = 0
    read_ns: int = 0
    lost: int = 0
    pid: int = 0
    name: str = ""
    python: str = ""
    start_ns: int = 0
    duration_ns: int = 0
    cpu_ns: int = 0
    generation: int = 0


def read_log(path: Path) -> Collections:
    """Read it as far as it goes. Raises StoreError."""
    try:
        content = read_regular(path, _MOST_BYTES)
        whole = content[: content.rfind(b"\n") + 1]  # the last line may be half written
        first, *lines = msgspec.json.Decoder(_Line).decode_lines(whole) or [_Line()]
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path} is no log of collections ({error}); {_WRITES_ONE}") from error
    if first.schema != PROBE_SCHEMA:
        raise StoreError(
            f"{path} is no log of collections: its first line does not say {PROBE_SCHEMA}; "
            f"{_WRITES_ONE}"
        )
    readings = [(each.read_ns, each.lost) for each in lines if each.read_ns]
    records = [
        (each.pid, each.start_ns, each.duration_ns, each.cpu_ns, each.generation)
        for each in lines
        if each.start_ns
    ]
    return Collections(
        first.boot_id,
        first.began_ns,
        readings[-1][0] if readings else 0,
        {each.pid: each.name for each in lines if each.name},
        {each.pid: each.python for each in lines if each.python},
        np.array(readings, np.int64).reshape(-1, 2),
        *np.array(records, np.int64).reshape(-1, 5).T,
    )
