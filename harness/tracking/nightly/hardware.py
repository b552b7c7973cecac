"""Which machine this is: the name under which asv keeps its results, and one more if it changes."""

from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness.files import StoreError, indented, set_aside, write_whole
from harness.tracking.asv.json_files import read_json
from harness.tracking.asv.result_files import MACHINE_VERSION

_DECIDES = ("arch", "cpu", "num_cpu", "ram")
_DIGITS = 6
_SAME_MEMORY = 0.05
"""Share by which it may differ: kernels keep more or less of it for themselves."""


class KnownMachine(NamedTuple):
    """``hardware``: by asv's fields. ``note`` is a sentence where the name begins with this run."""

    name: str
    hardware: dict[str, str]
    note: str = ""


def this_machine(results: Path, name: str = "") -> KnownMachine:
    """This machine, called ``name`` or, where that is "", as it calls itself.

    Where the results of that name are of other hardware, a name of its own is made from what
    differs: figures of two machines are no one series. Raises ValueError for what is no name.
    """
    from asv.machine import Machine as AsvMachine  # type: ignore[import-untyped]

    hardware: dict[str, str] = AsvMachine.get_defaults()
    name = name or hardware["machine"]
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"--machine {name}: must be a plain name, for it names a folder")
    recorded = _recorded(results / name)
    different = _different(recorded, hardware)
    if not different:
        return KnownMachine(name, hardware | {"machine": name})
    for folder in sorted(results.glob(f"{escape(name)}-{'[0-9a-f]' * _DIGITS}")):
        # Not by the digest: it may differ where the memory is a little more or less.
        if (kept := _recorded(folder)) and not _different(kept, hardware):
            return KnownMachine(folder.name, hardware | {"machine": folder.name})
    told = [*(hardware[field] for field in _DECIDES[:-1]), _roughly(hardware["ram"])]
    digest = sha256("\n".join(told).encode()).hexdigest()[:_DIGITS]
    other = f"{name}-{digest}"
    words = ", ".join(f"{field} {recorded[field]} → {hardware[field]}" for field in different)
    note = f"The hardware of {name} has changed ({words}): its figures are kept as {other}."
    return KnownMachine(other, hardware | {"machine": other}, note)


def tell_asv(machine: KnownMachine) -> None:
    """Write what this machine is to where asv looks for it. Raises StoreError."""
    # Not by `asv machine`: told only a new name, it forgets all other fields.
    path = Path("~/.asv-machine.json").expanduser()
    try:
        known = read_json(path, MACHINE_VERSION) if path.exists() else {}
    except StoreError:
        set_aside(path)  # asv writes it anew at each run, and a killed one leaves half of it
        known = {}
    if known.get(machine.name) != machine.hardware:
        entries = known | {machine.name: machine.hardware, "version": MACHINE_VERSION}
        write_whole(path, indented(entries), "HOME")


def _recorded(folder: Path) -> dict[str, str]:
    try:
        record = read_json(folder / "machine.json", MACHINE_VERSION)
    except StoreError:
        return {}
    return {field: str(record[field]) for field in _DECIDES if record.get(field)}


def _different(recorded: dict[str, str], hardware: dict[str, str]) -> list[str]:
    return [field for field in _DECIDES if _differs(field, recorded, hardware)]


def _differs(field: str, one: dict[str, str], other: dict[str, str]) -> bool:
    if field not in one:
        return False
    if field == "ram" and one[field].isdigit() and other[field].isdigit():
        return abs(int(one[field]) - int(other[field])) > _SAME_MEMORY * int(one[field])
    return one[field] != other[field]


def _roughly(text: str) -> str:
    return f"{int(text):.1e}" if text.isdigit() else text
