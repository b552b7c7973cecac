"""What commands print, as text, and golden files to compare it with."""

import io
import os
from collections.abc import Collection
from pathlib import Path

from rich.cells import cell_len

from harness.render.terminal import make_console, print_report
from harness.report.kinds import describe_result

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


def printed(print_it, *args, width: int = 80, whole: Collection[str] = (), **kwargs) -> str:
    """``whole``: what stands in one line however long it is."""
    file = io.StringIO()
    console = make_console(file)
    console.width = width
    print_it(*args, console=console, **kwargs)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert all(cell_len(line) <= width for line in lines if not line.endswith(tuple(whole)))
    assert "\x1b" not in file.getvalue()
    return "\n".join(lines) + "\n"


def assert_golden_screens(name: str, show) -> None:
    """Compares what ``show`` gives at the narrowest width with ``NAME.txt``; wider ones fit."""
    narrowest, *others = WIDTHS
    assert_golden(f"{name}.txt", show(narrowest))
    for width in others:
        show(width)


def reported(result, more: str = "gcbench report …", width: int = 80, **how) -> str:
    """What a terminal shows of a result."""
    report = describe_result(result)
    commands = [command for _, command in report.next] + [report.command] * bool(report.command)
    return printed(print_report, report, more=more, width=width, whole=commands, **how)
