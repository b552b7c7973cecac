"""The grammar of ``--gc``: what the collector of each process is asked to be."""

import difflib
import gc
import sys
from dataclasses import dataclass
from itertools import combinations

ROLES = ("engine", "worker", "output", "frontend", "client")
"""The processes of a trial; each has a collector of its own."""

_STARTS_WITH = {
    (3, 11): (700, 10, 10),
    (3, 13): (2000, 10, 10),
    (3, 14): (2000, 10, 0),  # the incremental collector
    (3, 14, 5): (2000, 10, 10),
}
_KNOWN_BEFORE = (3, 16)


def initial_thresholds(version: tuple[int, ...]) -> tuple[int, int, int]:
    """What CPython of this version starts with.

    A table, for by now a library or sitecustomize may have set others; a version it lacks is
    believed to have none that did.
    """
    since = max((each for each in _STARTS_WITH if each <= version), default=None)
    if since is None or version >= _KNOWN_BEFORE:
        return gc.get_threshold()
    return _STARTS_WITH[since]


DEFAULT_THRESHOLDS = initial_thresholds(tuple(sys.version_info[:3]))

ON_WAIT_FULL_EVERY = 1000
"""Steps from one full collection of ``on_wait`` to the next, where it names no number."""

_MAX_NUMBER = 2**31 - 1

_NUMBERS = {
    "as_is": (0, 0),
    "default": (0, 0),
    "disabled": (0, 0),
    "freeze": (0, 0),
    "threshold": (1, 3),
    "batch_threshold": (0, 0),
    "on_wait": (0, 1),
}
"""How many numbers, at least and at most, a part takes after its colon."""

POLICY_NAMES = tuple(_NUMBERS)

DESCRIPTIONS = {
    "as_is": "Whatever the engine has set, its frozen heap included.",
    "default": "Unfrozen, enabled, the interpreter's own thresholds.",
    "disabled": "Automatic collection off.",
    "freeze": "All objects of the warmed-up process are left out of every later pass.",
    "threshold": "threshold:G0[/G1[/G2]]: these thresholds.",
    "batch_threshold": "The gen-0 threshold raised by the batch size (vLLM #26369, proposal 2).",
    "on_wait": "on_wait[:N]: off, but gen 0 and 1 by hand while the device is busy, gen 2 every N.",
}
"""What each part does, in a line."""

_BESIDE_FREEZE = {"disabled", "threshold", "batch_threshold", "on_wait"}
"""What ``freeze`` combines with; no other two parts hold in one process."""


@dataclass(frozen=True, slots=True)
class PolicyPart:
    """One part of a policy; ``role`` is empty where it holds in every process."""

    name: str
    numbers: tuple[int, ...] = ()
    role: str = ""

    def __str__(self) -> str:
        numbers = ":" + "/".join(map(str, self.numbers)) if self.numbers else ""
        return self.name + numbers + (f"@{self.role}" if self.role else "")


@dataclass(frozen=True, slots=True)
class Policy:
    """What was asked for, in canonical order: ``parse_policy(str(policy)) == policy``."""

    parts: tuple[PolicyPart, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))

    def __contains__(self, name: str) -> bool:
        return any(part.name == name for part in self.parts)

    def numbers(self, name: str) -> tuple[int, ...]:
        """The numbers that the part of this name was given; empty where there are none."""
        return next((part.numbers for part in self.parts if part.name == name), ())

    def for_role(self, role: str) -> "Policy":
        """What this asks of one process; ``default`` where it says nothing of that role.

        A role may end in a rank: ``worker1`` is a ``worker``. Raises ValueError for any other.
        """
        kind = role.rstrip("0123456789")
        if kind not in ROLES:
            raise ValueError(f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")
        asked = [PolicyPart(p.name, p.numbers) for p in self.parts if p.role in ("", kind)]
        return Policy(tuple(sorted(asked, key=_canonical_order)) or (PolicyPart("default"),))


def parse_policy(text: str) -> Policy:
    """Read ``PART[+PART...]``, each part a name of ``POLICY_NAMES`` with ``@ROLE`` where it wants.

    What is not said is as in ``default``, so that a policy fixes the whole state: ``freeze``
    alone is a frozen heap with the interpreter's thresholds. Raises ValueError, in one
    sentence, for unknown names and roles, wrong numbers and parts that contradict each other.
    """
    parts = [_parse_part(piece, text) for piece in text.split("+")]
    for role in ROLES:
        _refuse_contradiction([part for part in parts if part.role in ("", role)], role, text)
    return Policy(tuple(sorted(parts, key=_canonical_order)))


def _parse_part(piece: str, text: str) -> PolicyPart:
    named, at, role = piece.partition("@")
    name, colon, after = named.partition(":")
    if name not in _NUMBERS:
        raise ValueError(_unknown("collector policy", name, POLICY_NAMES, text))
    if at and role not in ROLES:
        raise ValueError(_unknown("role", role, ROLES, text))
    numbers = after.split("/") if colon else []
    least, most = _NUMBERS[name]
    if not least <= len(numbers) <= most:
        wanted = {0: "no number", 1: "at most one number", 3: "one to three numbers"}[most]
        raise ValueError(f"{name!r} in --gc {text!r} takes {wanted}, not {len(numbers)}.")
    for position, number in enumerate(numbers):
        smallest = 1 if name == "threshold" and position == 0 else 0
        if not (number.isascii() and number.isdigit() and smallest <= int(number) <= _MAX_NUMBER):
            hint = "; 'disabled' switches the collector off" if smallest else ""
            raise ValueError(
                f"{number!r} in --gc {text!r} is not a whole number from {smallest} to "
                f"{_MAX_NUMBER}{hint}."
            )
    values = tuple(map(int, numbers))
    return PolicyPart(
        name, () if (name, values) == ("on_wait", (ON_WAIT_FULL_EVERY,)) else values, role
    )


def _refuse_contradiction(parts: list[PolicyPart], role: str, text: str) -> None:
    for first, second in combinations(parts, 2):
        names = {first.name, second.name}
        if len(names) == 1 or names - _BESIDE_FREEZE != {"freeze"}:
            raise ValueError(
                f"'{first}' and '{second}' in --gc {text!r} cannot both hold in the {role} "
                "process; keep one of them."
            )


def _unknown(what: str, name: str, known: tuple[str, ...], text: str) -> str:
    # Not by engines.nearest, which the engines of an older commit may not have.
    near = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known)
    return f"There is no {what} {name!r} (in --gc {text!r}); did you mean {near}?"


def _canonical_order(part: PolicyPart) -> tuple[int, int]:
    return ROLES.index(part.role) + 1 if part.role else 0, POLICY_NAMES.index(part.name)
