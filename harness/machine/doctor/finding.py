"""What the doctor says about one thing."""

from typing import Literal

import msgspec


class DoctorFinding(msgspec.Struct, frozen=True):
    """``detail`` is what was seen, ``advice`` what to do about it ("" where nothing is to do).

    "bad" stops or falsifies a measurement, "warn" makes it noisier or another one than meant.
    """

    level: Literal["ok", "warn", "bad"]
    what: str
    detail: str
    advice: str = ""
