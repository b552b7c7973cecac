"""How long the device has taken so far, in memory that worker and front end share."""

from typing import NamedTuple

import numpy as np

_FIELDS = 3


class DeviceTotals(NamedTuple):
    """Nanoseconds since the start: blocked on the device, of these too many, and as modelled."""

    device_ns: int
    late_ns: int
    modelled_ns: int


class DeviceLog:
    """Written by the worker once a step, read by the front end; either may be another process."""

    def __init__(self, path: str, *, create: bool = False) -> None:
        self._totals = np.memmap(path, np.int64, "w+" if create else "r+", shape=(_FIELDS,))

    def add(self, device_ns: int, late_ns: int, modelled_seconds: float) -> None:
        """Count a step."""
        self._totals += (device_ns, late_ns, round(modelled_seconds * 1e9))

    def read(self) -> DeviceTotals:
        """The totals now."""
        return DeviceTotals(*self._totals.tolist())
