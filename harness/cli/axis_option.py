"""Any axis by one option: ``--axis wire=pickle,columns``."""

from collections.abc import Collection, Iterable

from engines.nearest import nearest
from harness.axes import AXES, Value
from harness.cli.options import CommaList, option

axis_option = option(
    "--axis",
    "axis",
    multiple=True,
    metavar="NAME=LIST",
    help="With --http-cost: values of an axis, such as gc=default,freeze; may be repeated.",
)


def parse_axes(given: Iterable[str], fixed: Collection[str]) -> dict[str, list[Value]]:
    """The values of each axis that was named; ``fixed``: those that take none here.

    Raises ValueError for what is no axis, or has no value that one of it can be.
    """
    found: dict[str, list[Value]] = {}
    for text in given:
        name, is_pair, listed = text.partition("=")
        name = name.strip().replace("-", "_")
        if not is_pair:
            raise ValueError(f"--axis {text}: must be NAME=LIST, such as gc=default,freeze")
        if name not in AXES:
            near = ", ".join(nearest(name, AXES))
            raise ValueError(f"--axis {text}: no axis {name!r}; did you mean {near}?")
        if name in fixed:
            raise ValueError(f"--axis {text}: {name} takes no value here; leave it out")
        if name in found:
            raise ValueError(f"--axis {text}: {name} is given twice; give all its values in one")
        found[name] = CommaList(AXES[name].kind).convert(listed, None, None)
    return found
