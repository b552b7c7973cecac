"""A profile as the .toml file that ``--axis device-profile=FILE`` reads."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from benchmarks.calibrate.figures import Figure
from benchmarks.calibrate.words import figure_comment
from engines.builtin.device.profile import DeviceProfile

_HEAD = "# Written by benchmarks.calibrate; sizes follow from the model's shape, rates are fitted."


def profile_toml(profile: DeviceProfile, figures: Sequence[Figure]) -> str:
    """The file's text; what the points left open is said over its figure."""
    comments = {figure.name: figure_comment(figure) for figure in figures}
    lines = [_HEAD]
    for name, value in msgspec.structs.asdict(profile).items():
        if value is None:
            continue
        if comment := comments.get(name):
            lines.append(f"# {comment}")
        lines.append(f"{name} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        fields = (
            f"{name} = {_value(each)}" for name, each in msgspec.structs.asdict(value).items()
        )
        return "{ " + ", ".join(fields) + " }"
    if isinstance(value, str):
        # A basic string of TOML is one of JSON, but for this one character and half surrogates.
        whole = value.encode(errors="replace").decode()
        return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(float(value))
