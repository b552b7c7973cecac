"""Tests use what modules offer: behaviour is what is asserted, and a private name may go."""

from pathlib import Path

import pytest
from private_names import private_names

HERE = Path(__file__).parent
LEFT = {
    "engines/model/test_reference_ops.py",
}
"""Files that still do. None may come to them."""


def reaching() -> set[str]:
    files = sorted(HERE.rglob("*.py"))
    return {str(p.relative_to(HERE)) for p in files if list(private_names(p.read_text()))}


def test_no_test_reaches_into_private_names():
    assert reaching() - LEFT == set()


def test_what_no_longer_does_is_not_excused():
    assert LEFT - reaching() == set()


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
