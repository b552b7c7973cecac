"""Pages from templates: everything that comes from results is escaped on its way in."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness import format as fmt
from harness.render.verdict_words import REFERENCE
from harness.report.series_words import LABELS

PAGES_FOLDER = Path(__file__).parent
ASSETS = PAGES_FOLDER / "assets"


@cache
def templates() -> Environment:
    """Where they are; each is compiled once, however many sites are made of it."""
    made = Environment(
        loader=FileSystemLoader(PAGES_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    verdicts = dict[str, str]([*LABELS.items(), ("reference", REFERENCE)])
    made.globals |= {
        "verdicts": verdicts,
        "percent": fmt.percent,
        "interval": fmt.interval,
        "one_of": fmt.one_of,
    }
    return made
