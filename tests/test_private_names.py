"""Tests use what modules offer: behaviour is what is asserted, and a private name may go."""

from pathlib import Path

import pytest
from private_names import private_names

HERE = Path(__file__).parent


def test_no_test_reaches_into_private_names():
    reaching = {
        str(path.relative_to(HERE)): names
        for path in sorted(HERE.rglob("*.py"))
        if (names := list(private_names(path.read_text())))
    }
    assert reaching == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from a.b import _c, d", ["_c"]),
        ("a._b.c", ["a._b"]),
        ("f()._b", ["f()._b"]),
        ('patch.setattr(a, "_b", 1)', ["_b"]),
        ('patch.setattr("a._b", 1)', ["_b"]),
        ("self._a; cls._b; a._replace(b=1); a.__dict__; os._exit(1)", []),
        ("from __future__ import annotations", []),
    ],
)
def test_what_is_a_private_name(source, names):
    assert list(private_names(source)) == names
