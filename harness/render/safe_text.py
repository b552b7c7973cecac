"""Text for rich that a terminal shows and does not obey, whatever file it came from."""

from rich.console import OverflowMethod
from rich.text import Text

from harness.format import printable


def safe_text(text: str, style: str = "", overflow: OverflowMethod | None = None) -> Text:
    """A text as it stands, control characters written as escapes; line ends stay."""
    lines = "\n".join(map(printable, text.split("\n")))
    return Text(lines, style=style, overflow=overflow)
