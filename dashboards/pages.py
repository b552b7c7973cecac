"""Pages from templates: everything that comes from results is escaped on its way in."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.report.verdict_words import LABELS

HERE = Path(__file__).parent
ASSETS = HERE / "assets"


def environment(**everywhere: Any) -> Environment:
    """Where templates are; ``everywhere``: what each of them can name."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"verdicts": LABELS, **everywhere}
    return made
