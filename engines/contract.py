"""Whether what a name leads to is what its protocol says, so far as can be told without a call."""

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any


def engine_breach(engine: Any) -> str:
    """What an engine lacks of `EngineClass` and `StepEngine`, behind its name; "" if nothing."""
    from engines.protocol import EngineClass, StepEngine  # with NumPy, which names do without

    adapter = getattr(engine, "adapter", None)
    if adapter is not None and (lacks := adapter_breach(adapter)):
        return lacks
    asked = methods(EngineClass)
    made = methods(StepEngine) if isinstance(engine, type) else []
    lacks = lacking(engine, asked)
    if lacks and callable(engine) and not any(hasattr(engine, name) for name in asked):
        return f"is no engines.adapter.Adapter; derive it from that ({lacks})"
    if lacks := lacks or lacking(engine, made):
        return lacks
    for name, (is_kept, words) in _ATTRIBUTES.items():
        if not is_kept(getattr(engine, name, None)):
            return f"has no {name}, {words}"
    shapes = getattr(engine, "shapes", None)
    if not (isinstance(shapes, tuple) and shapes and all(map(_is_pair, shapes))):
        return (
            f"has shapes {shapes!r}: must be a tuple of at least one pair of a representation and "
            "a delivery; ('', 'per_request') where it has its own"
        )
    return ""


def adapter_breach(adapter: Any) -> str:
    """What the class of an adapter lacks, behind its name; "" if nothing."""
    from engines.protocol import Traits

    if lacks := lacking(adapter, ("add_request", "step", "has_unfinished_requests", "shutdown")):
        return lacks
    for name, least in (("representations", 0), ("devices", 1)):
        given = getattr(adapter, name)
        are_names = isinstance(given, tuple) and all(map(_is_name, given))
        if not (are_names and len(set(given)) == len(given) >= least):
            return f"has {name} {given!r}: must be a tuple of names, each once, such as ('lists',)"
    if not isinstance(adapter.axes, frozenset):
        return f"has axes {adapter.axes!r}: must be a frozenset, such as frozenset(['wire'])"
    if adapter.package and not _is_path(adapter.package):
        return f"has package {adapter.package!r}: must be a path, such as 'toy' or 'src/toy'"
    if not isinstance(adapter.traits, Traits):
        return f"has traits {adapter.traits!r}: must be Traits(...), of engines.protocol"
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


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool)


def _is_path(given: Any) -> bool:
    return isinstance(given, str) and all(map(str.isidentifier, given.split("/")))


_ATTRIBUTES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "has_wait_hook": (_is_flag, "True or False"),
    "package": (_is_path, "the path of the one that a release may name"),
    "axes": (lambda given: isinstance(given, frozenset), "a frozenset of those that it takes"),
    "own_values": (lambda given: isinstance(given, Mapping), "the names of its own by axis"),
}
"""Of an engine's class: whether a value can be, and what it is."""


def _is_name(given: Any) -> bool:
    return isinstance(given, str) and given != ""


def _is_pair(shape: Any) -> bool:
    is_pair = isinstance(shape, tuple) and len(shape) == 2
    return is_pair and all(isinstance(name, str) for name in shape)
