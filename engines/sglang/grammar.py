"""SGLang's grammars without its threads and without a device."""

import sys
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class _AtOnce:
    """In the place of the threads that compile grammars: a request's is there when it has come."""

    def submit(self, compiles: Callable[..., Any], *args: Any) -> Future[Any]:
        """What it returns, done."""
        done: Future[Any] = Future()
        done.set_result(compiles(*args))
        return done


class _Sleepers:
    """The clock of who waits for grammars: asleep it goes on, and a sleep never ends early.

    Up to 0.5.14 the whole time for which a step may wait is slept away by tenths, though all
    grammars are there.
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def perf_counter(self) -> float:
        """Now."""
        return self._seconds

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        self._seconds += 1.001 * seconds


def backend_of(scheduler: Any) -> Any:
    """The release's own, or None where it has been told to have none."""
    return getattr(scheduler, "grammar_manager", scheduler).grammar_backend


def do_at_once(scheduler: Any) -> None:
    """Have grammars compiled in this thread. Masks are filled and then applied to nothing: that
    is the device's.
    """
    from sglang.srt.constrained.xgrammar_backend import XGrammarGrammar
    from xgrammar import kernels

    backend_of(scheduler).executor = _AtOnce()
    XGrammarGrammar.apply_vocab_mask = staticmethod(lambda logits, vocab_mask: None)
    if not hasattr(kernels, "apply_token_bitmask_inplace_kernels"):
        kernels.apply_token_bitmask_inplace_kernels = {}  # 0.4.6 looks there for one of CUDA
    if (waits := sys.modules.get("sglang.srt.constrained.grammar_manager")) is not None:
        waits.time = _Sleepers()  # type: ignore[attr-defined]
