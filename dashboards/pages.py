"""Pages from templates: everything that comes from results is escaped on its way in."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
ASSETS = HERE / "assets"

VERDICTS = {
    "worse": "▼ worse",
    "better": "▲ better",
    "changed": "~ changed",
    "suspicious": "? suspicious",
    "same": "= same",
    "missing": "– missing",
}


def environment(**everywhere: Any) -> Environment:
    """Where templates are; ``everywhere``: what each of them can name."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"verdicts": VERDICTS, **everywhere}
    return made
