"""``torch.cuda`` on the CPU: tensors lie in its memory, and what a GPU would punish fails here.

- A copy to pinned memory is there when an event behind it, or the device, has been waited for.
- Pinned memory that a copy comes from must stay as it was until then.
- A graph repeats the operations of its capture, on the tensors that these were called with:
  what the host decided then stays. An operation that waits for the GPU invalidates a capture.
- An allocation of more than `LARGEST_BYTES` is refused.

Kernels are the reference's operations, each as one node of a graph. Time is a second for each
transfer that the host has prepared and nothing for all else, or what another clock says.
"""

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engines.builtin.model.gumbel_reference import sample_reference
from engines.builtin.model.reference import ReferenceOps

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
MEMORY_BYTES = 2 << 30
OTHERS_SHARE = 0.5
LARGEST_BYTES = 256 << 20
_WAITS_FOR_THE_GPU = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"}
_NOT_THERE_YET = 77
_DEVICE = "engines.builtin.device.cuda_model"
"""What has imported the names that are replaced, or will."""


class StandIn:
    """One device. ``num_transfers``: copies to it from pinned memory; ``num_calls``: of torch by
    the host, those that a graph repeats left out; ``peak_bytes``: the most that
    tensors held which calls had made and somebody still had.
    """

    def __init__(self, now: Callable[[], float] | None) -> None:
        self.now = now or (lambda: float(self.num_transfers))
        self.is_ahead = False
        """Whether all that is queued is done where the host waits for some of it: it may be."""
        self.num_captures = 0
        self.num_replays = 0
        self.num_transfers = 0
        self.num_calls = 0
        self.num_bytes = self.peak_bytes = 0
        self._queued: list[Callable[[], object]] = []
        self._done = 0
        self._pinned: dict[int, Tensor] = {}
        self.capturing: _Recorder | None = None

    @property
    def place(self) -> int:
        """How much has been queued."""
        return self._done + len(self._queued)

    def complete(self, place: int) -> None:
        """All that was queued before ``place`` is done."""
        while self._queued and self._done < place:
            self._queued.pop(0)()
            self._done += 1

    def answered(self, result: Tensor, given: Any) -> None:
        """By a call of torch; a view holds nothing of its own."""
        if not any(isinstance(each, Tensor) and _same_memory(each, result) for each in given):
            self._hold(result.nbytes)
            weakref.finalize(result, self._hold, -result.nbytes)

    def _hold(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes
        self.peak_bytes = max(self.peak_bytes, self.num_bytes)

    def forget_peak(self) -> None:
        """Count anew from what is held."""
        self.peak_bytes = self.num_bytes

    def pin(self, tensor: Tensor) -> Tensor:
        self._pinned[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    def is_pinned(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self._pinned

    def bring(self, source: Tensor) -> Tensor:
        """From pinned memory to the device."""
        there = source.clone()
        self.num_transfers += 1

        def check() -> None:
            assert torch.equal(source, there), "pinned memory was overwritten under a copy"

        self._queued.append(check)
        return there

    def fetch(self, target: Tensor, source: Tensor) -> Tensor:
        """From the device to pinned memory."""
        there = source.clone()
        target.fill_(_NOT_THERE_YET)
        self._queued.append(partial(target.copy_, there))
        return target


class _OnCpu(TorchFunctionMode):
    """What is asked for on the GPU lies on the CPU."""

    def __init__(self, stand_in: StandIn) -> None:
        super().__init__()
        self._stand_in = stand_in

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self._stand_in.num_calls += 1
        kwargs = dict(kwargs or {})
        given = [kwargs.get("device"), *args]
        to_gpu = any(_is_gpu(each) for each in given)
        if func is torch.device:
            return func(*args, **kwargs)
        if func is Tensor.to and to_gpu and self._stand_in.is_pinned(args[0]):
            return self._stand_in.bring(args[0])
        if func is Tensor.copy_ and kwargs.pop("non_blocking", False):
            assert self._stand_in.is_pinned(args[0]), "a copy to memory that is not pinned waits"
            return self._stand_in.fetch(args[0], args[1])
        pinned = kwargs.pop("pin_memory", False)
        if to_gpu:
            kwargs |= {"device": CPU} if "device" in kwargs else {}
            args = tuple(CPU if _is_gpu(each) else each for each in args)
            kwargs.pop("non_blocking", None)
        result = func(*args, **kwargs)
        if isinstance(result, Tensor):
            self._stand_in.answered(result, args)
        if pinned:
            return self._stand_in.pin(result)
        if to_gpu and isinstance(result, Tensor) and result.nbytes > LARGEST_BYTES:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return result


def _is_gpu(given: Any) -> bool:
    if isinstance(given, str):
        return given.startswith("cuda")
    return isinstance(given, torch.device) and given.type == "cuda"


class _Generator(torch.Generator):
    """A mode does not see what this is made for."""

    def __new__(cls, device: Any = CPU) -> Any:
        return super().__new__(cls, CPU)


class _Recorder(TorchDispatchMode):
    """The operations of a capture, to be run again."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[Callable[[], Any], Any]] = []
        self._within = False

    def node(self, run: Callable[[], Any]) -> Any:
        """Run, and record as one whatever it consists of."""
        self._within = True
        try:
            result = run()
        finally:
            self._within = False
        self.nodes.append((run, result))
        return result

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        run = partial(func, *args, **(kwargs or {}))
        if self._within:
            return run()
        if func.name() in _WAITS_FOR_THE_GPU:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        result = run()
        self.nodes.append((run, result))
        return result


def install(now: Callable[[], float] | None = None) -> tuple[StandIn, ExitStack]:
    """Make it this process's GPU, until the stack is closed. ``now``: its clock, in seconds."""
    stand_in, stack = StandIn(now), ExitStack()
    names = _cuda(stand_in)
    stack.enter_context(patch.multiple(torch.cuda, **names))
    stack.enter_context(patch.object(torch, "Generator", _Generator))
    for name, module in _kernels(stand_in).items():
        stack.callback(_put_back, name, sys.modules.get(name))
        sys.modules[name] = module
    stack.callback(_put_back, _DEVICE, sys.modules.pop(_DEVICE, None))
    stack.enter_context(_OnCpu(stand_in))
    return stand_in, stack


def _put_back(name: str, module: ModuleType | None) -> None:
    """Not with all else: what torch has imported meanwhile it would not import twice."""
    sys.modules.pop(name, None)
    if module is not None:
        sys.modules[name] = module


def _kernels(stand_in: StandIn) -> dict[str, ModuleType]:
    """The packages of the kernels, with the reference in their place."""

    def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            run = partial(function, *args, **kwargs)
            return run() if stand_in.capturing is None else stand_in.capturing.node(run)

        return call

    class RecordedOps(ReferenceOps):
        def to_host(self, tokens: Tensor, ring: Tensor, turn: Tensor) -> None:
            assert stand_in.is_pinned(ring), "a kernel does not reach memory that is not pinned"
            stand_in.fetch(ring[int(turn) % len(ring), : len(tokens)], tokens)

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            return recorded(found) if callable(found) and not name.startswith("_") else found

    package, gumbel = (
        ModuleType(f"engines.builtin.model.kernels{name}") for name in ("", ".gumbel")
    )
    package.TritonOps = RecordedOps  # type: ignore[attr-defined]
    gumbel.sample = recorded(sample_reference)  # type: ignore[attr-defined]
    return {module.__name__: module for module in (package, gumbel)}


def _cuda(stand_in: StandIn) -> dict[str, Any]:
    """Names of ``torch.cuda`` that the project uses."""

    class Stream:
        def __init__(self, *_: Any) -> None:
            pass

        def wait_event(self, event: "Event") -> None:
            pass

        def wait_stream(self, stream: "Stream") -> None:
            pass

        def synchronize(self) -> None:
            stand_in.complete(stand_in.place)

    class Event:
        def __init__(self, enable_timing: bool = False, interprocess: bool = False) -> None:
            self._place, self.clock = 0, 0.0

        def record(self, stream: Stream | None = None) -> None:
            self._place, self.clock = stand_in.place, stand_in.now()

        def synchronize(self) -> None:
            stand_in.complete(stand_in.place if stand_in.is_ahead else self._place)

        def wait(self, stream: Stream | None = None) -> None:
            pass

        def elapsed_time(self, end: "Event") -> float:
            """Milliseconds."""
            return (end.clock - self.clock) * 1e3

    class CUDAGraph:
        def __init__(self) -> None:
            self.nodes: list[tuple[Callable[[], Any], Any]] = []

        @torch.inference_mode()
        def replay(self) -> None:
            stand_in.num_replays += 1
            calls_of_the_host = stand_in.num_calls
            for run, before in self.nodes:
                for old, new in zip(tree_leaves(before), tree_leaves(run()), strict=True):
                    if isinstance(old, Tensor) and not _same_memory(old, new):
                        old.copy_(new)
            stand_in.num_calls = calls_of_the_host

    @contextmanager
    def graph(captured: CUDAGraph, **_: Any) -> Iterator[None]:
        recorder = _Recorder()
        stand_in.capturing = recorder
        stand_in.num_captures += 1
        failed = True
        try:
            with recorder:
                yield
            failed = False
        finally:
            stand_in.capturing = None
            if failed:  # as torch has it: ending the capture fails, and that is what comes out
                raise RuntimeError("CUDA error: operation failed due to a previous error")
        captured.nodes = recorder.nodes

    current = Stream()

    @contextmanager
    def stream(_: Stream) -> Iterator[None]:
        yield

    properties = SimpleNamespace(
        name="stand-in", total_memory=MEMORY_BYTES, multi_processor_count=132
    )
    return {
        "Stream": Stream,
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "graph": graph,
        "stream": stream,
        "current_stream": lambda device=None: current,
        "graph_pool_handle": tuple,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "set_device": lambda device: None,
        "get_device_properties": lambda device: properties,
        "get_device_name": lambda device=None: properties.name,
        "synchronize": lambda device=None: stand_in.complete(stand_in.place),
        "empty_cache": lambda: None,
        "mem_get_info": lambda device=None: (int(MEMORY_BYTES * (1 - OTHERS_SHARE)), MEMORY_BYTES),
        "memory_reserved": lambda device=None: 0,
        "memory_allocated": lambda device=None: stand_in.num_bytes,
        "max_memory_allocated": lambda device=None: stand_in.peak_bytes,
        "reset_peak_memory_stats": lambda device=None: stand_in.forget_peak(),
    }


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
