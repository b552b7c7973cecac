"""Engines of another tree, which lack what the harness, always ours, asks of them."""

from pathlib import Path
from types import TracebackType

_HARNESS = Path(__file__).resolve().parent


def other_engines(error: BaseException) -> str:
    """What they lack where ``error`` says that the harness asked for it in vain, else ""."""
    lacks = _lacking(error)
    if not lacks or not _is_ours(error.__traceback__):
        return ""
    return (
        f"its engines lack {lacks}, which this gcbench needs; measure it with the gcbench of that "
        "commit"
    )


def _lacking(error: BaseException) -> str:
    match error:
        case ModuleNotFoundError(name=str(module)) if _is_of_engines(module):
            return module
        case ImportError(name=str(module)) if _is_of_engines(module):
            # Before 3.12 an ImportError does not say which name it is about.
            wanted = getattr(error, "name_from", None)
            return f"{module}.{wanted}" if wanted else f"a name of {module}"
        case AttributeError(name=str(attribute), obj=owner) if _is_of_engines(
            (kind := owner if isinstance(owner, type) else type(owner)).__module__
        ):
            return f"{kind.__name__}.{attribute}"
    return ""


def _is_of_engines(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "engines"


def _is_ours(trace: TracebackType | None) -> bool:
    """Whether it was raised by a line of the harness."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace is not None and _HARNESS in Path(trace.tb_frame.f_code.co_filename).parents
