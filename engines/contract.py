"""Whether what a name leads to is what its protocol says, so far as can be told without a call."""

from collections.abc import Iterable
from types import FunctionType
from typing import Any


def engine_breach(engine: Any) -> str:
    """What an engine lacks of `EngineClass` and `StepEngine`, behind its name; "" if nothing."""
    from engines.protocol import EngineClass, StepEngine  # with NumPy, which names do without

    made = methods(StepEngine) if isinstance(engine, type) else []
    if lacks := lacking(engine, [*methods(EngineClass), *made]):
        return lacks
    if not isinstance(getattr(engine, "has_wait_hook", None), bool):
        return "has no has_wait_hook, True or False"
    package = getattr(engine, "package", None)
    if not (isinstance(package, str) and package.isidentifier()):
        return "has no package, the name of the one that a release may name"
    shapes = getattr(engine, "shapes", None)
    if not (isinstance(shapes, tuple) and shapes and all(map(_is_pair, shapes))):
        return (
            f"has shapes {shapes!r}: must be a tuple of at least one pair of a representation and "
            "a delivery; ('', 'per_request') where it has its own"
        )
    return ""


def representation_breach(representation: Any) -> str:
    """What a class of representations lacks, behind its name; "" if nothing."""
    from engines.builtin.representations import Representation

    if lacks := lacking(representation, methods(Representation)):
        return lacks
    for flag in ("columnar", "owns_memory"):
        if not isinstance(getattr(representation, flag, None), bool):
            return f"has no {flag}, True or False"
    return ""


def methods(protocol: type) -> list[str]:
    """Those that a protocol names, its bases' first."""
    return [
        name
        for base in reversed(protocol.__mro__)
        if getattr(base, "_is_protocol", False)
        for name, value in vars(base).items()
        if not name.startswith("_") and isinstance(value, FunctionType | staticmethod)
    ]


def lacking(part: Any, names: Iterable[str]) -> str:
    """The methods that are not there, in words."""
    if not callable(part):
        return f"is {type(part).__name__} {part!r}, and not a class"
    missing = [name for name in names if not _is_written(getattr(part, name, None))]
    if not missing:
        return ""
    return f"has no method{'s' * (len(missing) > 1)} {', '.join(missing)}"


def _is_written(method: Any) -> bool:
    return callable(method) and not getattr(method, "__isabstractmethod__", False)


def _is_pair(shape: Any) -> bool:
    is_pair = isinstance(shape, tuple) and len(shape) == 2
    return is_pair and all(isinstance(name, str) for name in shape)
