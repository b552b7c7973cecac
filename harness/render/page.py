"""A report as one file of HTML that asks nobody for anything: styles and pictures are in it."""

from base64 import b64encode
from pathlib import Path

from harness.format import printable
from harness.render.csv_text import report_csv
from harness.render.image_file import NARROW
from harness.render.markdown import report_markdown
from harness.render.report import Picture, Report
from harness.render.verdict_words import SIGNS

_TEMPLATE = Path(__file__).parent / "templates" / "page.html"
_CLASSES = {SIGNS["better"]: "better", SIGNS["worse"]: "worse", SIGNS["inconclusive"]: "open"}


def report_page(report: Report) -> bytes:
    """The page as UTF-8; words of others are shown as they stand. Imports Jinja2 when called."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_shown
    )
    template = environment.from_string(_TEMPLATE.read_text("utf-8"))
    return template.render(
        report=report,
        markdown=report_markdown(report),
        csv=report_csv(report),
        classes=_CLASSES,
        address=_address,
    ).encode()


def _address(picture: Picture, *, is_narrow: bool = False) -> str:
    """The image as an address."""
    suffix, kind = (".png", "png") if picture.is_dense else (".svg", "svg+xml")
    image = picture.draw(f"{NARROW * is_narrow}{suffix}")
    return f"data:image/{kind};base64,{b64encode(image).decode()}"


def _shown(value: object) -> object:
    """A text without the characters that turn the direction of reading."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value
