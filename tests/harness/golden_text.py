"""What commands print, as text, and golden files to compare it with."""

import io
import os
from pathlib import Path

from rich.cells import cell_len

from harness.report import make_console

GOLDEN = Path(__file__).parents[1] / "golden"
NASTY = (
    "`a` <img src=x onerror=alert(1)> | **bold** [link](javascript:alert(1)) ![i](http://t.co/x) "
    "@octocat #1 https://example.org www.example.org <!-- ``` --> </details> &lt; ~~gone~~ _it_ $x$"
)


def assert_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text(), f"{name} changed; if meant, run with UPDATE_GOLDEN=1"


WIDTHS = (80, 100)


def printed(print_it, *args, width: int = 80, **kwargs) -> str:
    file = io.StringIO()
    console = make_console(file)
    console.width = width
    print_it(*args, console=console, **kwargs)
    text = "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    return text


def assert_golden_screens(name: str, show) -> None:
    """Compares what ``show`` gives at the narrowest width with ``NAME.txt``; wider ones fit."""
    narrowest, *others = WIDTHS
    assert_golden(f"{name}.txt", show(narrowest))
    for width in others:
        show(width)
