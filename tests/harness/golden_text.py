"""What commands print, as text, and golden files to compare it with."""

import io
import os
from pathlib import Path

import pytest

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


def printed(print_it, *args, **kwargs) -> str:
    file = io.StringIO()
    console = make_console(file)
    print_it(*args, console=console, **kwargs)
    text = "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    return text


def shown_by(command, result) -> str:
    """What a command's module prints of a result on a terminal."""

    def show(console):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "make_console", lambda: console)
            command.show(result)

    return printed(show)
