"""Which boot of which machine this is: moments of CLOCK_MONOTONIC mean something within one."""

from contextlib import suppress
from pathlib import Path


def boot_id() -> str:
    """Linux's name of it, which containers of one machine share; "" where nobody tells."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
