"""Names to implementations, imported only when asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from engines.contract import engine_breach
from engines.nearest import nearest


class Registry:
    """Maps a name to ``"module:attribute"``; packages add names under an entry-point group.

    ``breach`` says what an implementation lacks, behind its name, and "" where it lacks nothing.
    ``adapt`` makes one of what another package has registered.
    ``adopt``: where a function leads that takes a name with a colon, which nobody has registered.
    """

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, str],
        *,
        group: str = "",
        breach: Callable[[Any], str] = lambda _: "",
        adapt: Callable[[Any], Any] = lambda found: found,
        adopt: str = "",
    ) -> None:
        self.kind = kind
        self._entries = dict(entries)
        self._group = group
        self._breach = breach
        self._adapt = adapt
        self._adopt = adopt

    def _targets(self) -> dict[str, str]:
        if not self._group:
            return self._entries
        added: dict[str, str] = {}
        for point in entry_points(group=self._group):
            if added.setdefault(point.name, point.value) != point.value:
                raise ValueError(
                    f"{self.kind} {point.name!r} is registered twice, as {added[point.name]} and "
                    f"{point.value}; uninstall one of the two packages"
                )
        return added | self._entries

    def names(self) -> list[str]:
        """Every name that `load` takes, built-in ones first."""
        return list(self._entries) + sorted(self._targets().keys() - self._entries.keys())

    def load(self, name: str) -> Any:
        """The implementation. Raises ValueError as `check`, and where it breaks its contract."""
        if self._adopt and ":" in name:
            return _find(self._adopt)(name)
        target = self.check(name)
        found = _find(target) if name in self._entries else self._found_elsewhere(name, target)
        if breach := self._breach(found):
            raise ValueError(f"{self.kind} {name!r} ({target}) {breach}")
        return found

    def _found_elsewhere(self, name: str, target: str) -> Any:
        """What another package has registered, which may be broken in any way."""
        try:
            return self._adapt(_find(target))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise ValueError(
                f"{self.kind} {name!r} cannot be loaded from {target}: {why}"
            ) from error

    def check(self, name: str) -> str:
        """Where a name leads. Raises ValueError for an unknown one, with the nearest."""
        if self._adopt and ":" in name:
            return self._adopt
        # Built-in names first: asking for entry points reads the metadata of every distribution.
        target = self._entries.get(name) or self._targets().get(name)
        if target is None:
            near = ", ".join(nearest(name, self.names()))
            how = f" (packages add theirs by the entry point {self._group})" if self._group else ""
            raise ValueError(f"unknown {self.kind} {name!r}; did you mean {near}?{how}")
        return target


def _find(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _adapted(found: Any) -> Any:
    from engines.adapted import as_engine  # with NumPy, and no part of a built-in engine's heap

    return as_engine(found)


ENGINES = Registry(
    "engine",
    {
        "builtin": "engines.builtin.engine:Engine",
        "vllm-hostpath": "engines.vllm.host_path:HostPathEngine",
        "sglang-hostpath": "engines.sglang.host_path:SglangHostPath",
        "vllm": "engines.vllm.in_process:InProcessEngine",
    },
    group="gcbench.engines",
    breach=engine_breach,
    adapt=_adapted,
    adopt="engines.call:engine_of",
)
