"""Says how many bytecodes a small program executes, from `dis` alone and without running it.

The programs branch on nothing but ``next(tape, 0)``, so who has the tape knows the way through.
They use what `Walk` knows: no ``break``, no unpacking, no keyword arguments, no classes.
"""

import dis
import inspect
import sys
from collections.abc import Generator, Iterator, Mapping
from types import CodeType

_NOT_COUNTED = {"RESUME", "EXTENDED_ARG"}
_SUSPENDABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Raised(Exception):  # noqa: N818
    """The program has raised, and this frame has not caught it."""


def codes(code: CodeType) -> dict[str, CodeType]:
    """All code in a module's code, by the names of its functions."""
    found = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= {each.co_name: each} | codes(each)
    return found


class Walk:
    """Goes through functions as the interpreter would; ``num_bytecodes`` grows as it does."""

    def __init__(self, functions: Mapping[str, CodeType], tape: list[int]) -> None:
        self.num_bytecodes = 0
        self._functions = functions
        self._tape = iter(tape)

    def call(self, name: str) -> None:
        """Run a function to its end. Raises Raised."""
        for _ in self.frame(self._functions[name]):
            raise AssertionError(f"{name} yields")

    def frame(  # noqa: PLR0912, PLR0915  # one branch for each kind of instruction
        self, code: CodeType, argument: object = None
    ) -> Generator[None, None, None]:
        """One frame; it yields where the program's does, and can be closed. Raises Raised."""
        shown = list(dis.get_instructions(code))
        places = {each.offset: i for i, each in enumerate(shown)}
        handlers = dis.Bytecode(code).exception_entries
        callees: list[str] = []
        iterators: dict[int, Iterator[object]] = {}
        value = argument  # of the last call, which is what comes to be tested or iterated over
        fresh = argument if isinstance(argument, Iterator) else None
        made: CodeType | None = None
        raised: BaseException = Raised()
        at = next(i for i, each in enumerate(shown) if each.opname == "RESUME")
        while True:
            each = shown[at]
            name, arg = each.opname, each.argval
            self.num_bytecodes += name not in _NOT_COUNTED
            at += 1
            try:
                if name.startswith("LOAD_"):
                    made = arg if isinstance(arg, CodeType) else made
                    loaded = arg if isinstance(arg, tuple) else (arg,)
                    callees += [each for each in loaded if self._is_followed(each)]
                elif name == "STORE_FAST_LOAD_FAST":
                    callees += [each for each in arg[1:] if self._is_followed(each)]
                elif name == "MAKE_FUNCTION":
                    if made is not None and made.co_name.startswith("<"):
                        callees.append(made.co_name)
                elif name == "CALL":
                    if callees:
                        callee = callees.pop()
                        value = self._call(callee, value, fresh)
                        fresh = None if callee.startswith("<") else fresh
                elif name in ("GET_ITER", "GET_YIELD_FROM_ITER", "GET_AWAITABLE"):
                    fresh = iter(value)  # type: ignore[call-overload]
                elif name in ("FOR_ITER", "SEND"):
                    if fresh is not None:
                        iterators[each.offset], fresh = fresh, None
                    try:
                        value = next(iterators[each.offset])
                    except StopIteration:
                        at = _after_loop(shown, places[arg])
                elif name == "YIELD_VALUE":
                    yield
                elif name == "CHECK_EXC_MATCH":
                    value = isinstance(raised, Raised)
                elif name == "WITH_EXCEPT_START":
                    value = False
                elif "JUMP" in name:
                    if "_IF_" not in name or name.endswith("TRUE") == bool(value):
                        at = places[arg]
                elif name == "RAISE_VARARGS":
                    raise Raised
                elif name == "RERAISE":
                    raise raised
                elif name in ("RETURN_VALUE", "RETURN_CONST"):
                    return
            except (Raised, GeneratorExit) as error:
                raised = error
                callees.clear()
                targets = [h.target for h in handlers if h.start <= each.offset < h.end]
                if not targets:
                    raise
                at = places[targets[0]]

    def _is_followed(self, name: object) -> bool:
        return name in ("next", "range", "list") or name in self._functions

    def _call(self, callee: str, value: object, iterator: object) -> object:
        if callee == "next":
            return next(self._tape, 0)
        if callee == "range":
            assert isinstance(value, int)
            return range(value)
        if callee == "list":
            return list(value)  # type: ignore[call-overload]
        code = self._functions[callee]
        frame = self.frame(code, iterator)
        return frame if code.co_flags & _SUSPENDABLE else list(frame)


def _after_loop(shown: list[dis.Instruction], at: int) -> int:
    """From 3.12 on a loop's end has instructions that the interpreter steps over."""
    if shown[at].opname == "END_FOR":
        at += 1
        if sys.version_info[:2] == (3, 13):
            at += 1  # POP_TOP, of the iterator; later versions execute their POP_ITER
    return at
