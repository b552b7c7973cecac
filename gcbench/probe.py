"""The probe: every collection of this process, into a ring that another process reads.

``gcbench probe`` has it started with every interpreter, in other people's programs and by any
CPython from 3.8 on. So it is small, needs nothing but the standard library, and whatever goes
wrong in it, the program runs as if it were not there.

A ring is a file of shared memory: `HEADER` words of 64 bits, the last of them text, and then
`CAPACITY` records of `RECORD` words: start and duration on CLOCK_MONOTONIC and the CPU time of the
collecting thread, all in nanoseconds, the generation, and the number of objects freed. A ring says
once which process image it is of, and only that one writes to it, but for `READ`, the number of
records that the reader has taken. C code forks without a word, so each collection asks whether the
ring is still its own. A fork makes one at its first collection: one that collects nothing costs
nothing. A collection that finds the ring full is added up in words of the header, so no count is
ever wrong. One that found no callbacks, since the program has emptied the list, is told at exit by
`gc.get_stats`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from mmap import mmap
from time import monotonic_ns, thread_time_ns

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROBE_VARIABLE = "GCBENCH_PROBE"
"""Names the folder of rings. Without it nothing is done."""
LONG_VARIABLE = "GCBENCH_PROBE_LONG_NS"
"""Of pauses that long, in nanoseconds, what ran and what the young generations held is told."""
OLDEST_PYTHON = (3, 8)

MAGIC = 0x6763_7072_6F62_0004  # "gcprob" and the version of this format
HEADER, CAPACITY, RECORD = 512, 1024, 5
SIZE = 8 * (HEADER + CAPACITY * RECORD)

VERSION, WRITTEN, READ, FORKED_FROM = range(4)
IMAGE = 4
"""Of the image, what each exec, fork and reuse of a PID makes another: PID namespace, PID in it,
moment of its start and place of its stack, the last two as in `/proc/self/stat`, 0 for unknown."""
LOST, LOST_NS, LOST_LONGEST_NS, LOST_CPU_NS, LOST_COLLECTED = range(8, 23, 3)
"""Of collections that found no room, one word for each generation."""
SEEN, UNSEEN = 23, 26
"""Collections that the callbacks were called for, and how many more `gc.get_stats` had at exit."""
NAME, PYTHON, COMMAND, TEXT_END = 256, 384, 448, 8 * HEADER
"""Where texts begin, in bytes: `multiprocessing`'s name, Python's version, the command."""

_UNREAD, _LOOKED_AT, _TYPES = 16, 2000, 8
"""Of long pauses: how many may wait for the reader, objects looked at, and types named."""

_started = False


def start() -> None:
    """Record from now on, if the environment asks for it; called twice it does nothing more."""
    global _started  # noqa: PLW0603
    folder = os.environ.get(PROBE_VARIABLE)
    if not folder or _started or sys.version_info < OLDEST_PYTHON:
        return
    _started = True
    try:
        long_ns = int(os.environ.get(LONG_VARIABLE, "0"))
    except ValueError:
        long_ns = 0
    record_into(folder, long_ns)


def record_into(folder: str, long_ns: int) -> Callable[[], None]:  # noqa: PLR0915 -- its functions share cells
    """Add the two callbacks, the last at a collection's start and the first at its end.

    So what others do in theirs is in no pause. All that they use is in cells: the names of a
    module are gone before an interpreter's last collection.
    """
    clock, cpu_clock, callbacks, modules = monotonic_ns, thread_time_ns, gc.callbacks, sys.modules
    getpid, is_enabled, disable, enable = os.getpid, gc.isenabled, gc.disable, gc.enable
    write, new_ring, name_by_now, counts = _write, _new_ring, _multiprocessing_name, _counts
    put_outermost, where, held, tell_long = _put_outermost, _where, _held, _tell_long
    # A mapping that is let go would close its descriptor, whose number may by then be another's.
    kept: list[Any] = []
    words: Any = None
    owner, parent, written, began, cpu_began, name = 0, 0, 0, 0, 0, ""
    before = counts()
    was_long, line, objects, told = [False] * 3, ("", 0, ""), [], 0

    def begin(phase: str, info: Any) -> None:
        nonlocal began, cpu_began, line, objects
        if phase == "start":
            if callbacks[0] is not end:
                put_outermost(callbacks, begin, end)
            if long_ns:
                line = where()
                objects = held() if was_long[info["generation"]] else []
            cpu_began = cpu_clock()
            began = clock()

    def end(phase: str, info: Any) -> None:
        nonlocal words, written, name, began, told
        if phase == "start":
            if callbacks[-1] is not begin or callbacks[0] is not end:
                put_outermost(callbacks, begin, end)
            return
        duration, cpu, generation = clock() - began, cpu_clock() - cpu_began, info["generation"]
        if getpid() != owner:  # C code has forked it, which Python does not know of
            try:
                renew(generation)
            except Exception:  # it ends, or has no memory
                words = None
        if words is None or not began:
            return
        began_ns, began = began, 0
        if long_ns:
            was_long[generation] = duration >= long_ns
            if was_long[generation]:
                tell_long(folder, told, (began_ns, duration, generation, *line, objects))
                told += 1
        words[SEEN + generation] += 1
        if written - words[READ] >= CAPACITY:
            words[LOST + generation] += 1
            words[LOST_NS + generation] += duration
            words[LOST_CPU_NS + generation] += cpu
            words[LOST_COLLECTED + generation] += info["collected"]
            words[LOST_LONGEST_NS + generation] = max(words[LOST_LONGEST_NS + generation], duration)
            return
        at = HEADER + written % CAPACITY * RECORD
        words[at] = began_ns
        words[at + 1] = duration
        words[at + 2] = cpu
        words[at + 3] = generation
        words[at + 4] = info["collected"]
        written += 1
        words[WRITTEN] = written
        if not written % 8:  # it is given after the first collections, and may change
            now = name_by_now(modules)
            if now is not name:
                name = now
                write(words, NAME, PYTHON, name)

    def renew(collecting: int = -1) -> None:
        """A ring for this process. ``collecting``: its generation, in a collection."""
        nonlocal words, owner, written, name
        was_enabled = is_enabled()
        disable()  # a collection would find the ring of another process, or none
        try:
            if owner:
                forked()
                if collecting >= 0:
                    before[collecting] -= 1
            words, owner, written, name = None, getpid(), 0, ""
            words = new_ring(folder, parent)
            kept.append(words)
        finally:
            if was_enabled:
                enable()

    def forked() -> None:
        """This is another process by now, even one with the same PID in another namespace."""
        nonlocal words, owner, parent, before
        was_enabled = is_enabled()
        disable()
        words, parent, owner, before = None, owner or parent, 0, counts()
        if was_enabled:
            enable()

    def tell_unseen() -> None:
        if not owner and counts() != before:
            renew()
        if words is not None and getpid() == owner:
            for generation, ran in enumerate(counts()):
                seen = before[generation] + words[SEEN + generation]
                words[UNSEEN + generation] = max(0, ran - seen)

    def stop() -> None:
        atexit.unregister(tell_unseen)
        for own in (begin, end):
            if own in callbacks:
                callbacks.remove(own)

    renew()
    if words is not None:
        callbacks.insert(0, end)
        callbacks.append(begin)
        os.register_at_fork(after_in_child=forked)
        atexit.register(tell_unseen)
    return stop


def _put_outermost(
    callbacks: list[Any], begin: Callable[..., None], end: Callable[..., None]
) -> None:
    """Move them back, or put back the one that the program took for its own, as it was last.

    While CPython goes through the list, too: it goes by position.
    """
    for own, at in ((end, 0), (begin, len(callbacks))):
        if own in callbacks:
            callbacks.remove(own)
        callbacks.insert(at, own)


def _where() -> tuple[str, int, str]:
    """File, line and function that run as the collection begins, two callers up."""
    try:
        frame = sys._getframe(2)
    except ValueError:  # C code, in a thread that runs no Python
        return "", 0, ""
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


def _held() -> list[tuple[str, int]]:
    """Objects of the young generations by type, the most first; of many each so manieth."""
    try:
        young = gc.get_objects(generation=0) + gc.get_objects(generation=1)
        every = max(1, len(young) // _LOOKED_AT)
        found: dict[type, int] = {}
        for each in young[::every]:
            found[type(each)] = found.get(type(each), 0) + every
        most = sorted(found.items(), key=lambda each: -each[1])[:_TYPES]
        return [("%s.%s" % (kind.__module__, kind.__qualname__), count) for kind, count in most]  # noqa: UP031
    except Exception:  # a type may have any `__module__`, and there may be no memory
        return []


def _tell_long(folder: str, number: int, pause: tuple[Any, ...]) -> None:
    """A file that the reader takes away; one that it never took is written over."""
    name = os.path.join(folder, "%d-%d" % (os.getpid(), number % _UNREAD))  # noqa: PTH118, UP031
    try:
        with open(name, "wb") as file:  # noqa: PTH123
            file.write(repr(pause).encode("utf-8", "replace"))
        os.rename(name, name + ".long")  # noqa: PTH104
    except Exception:
        pass


def _counts() -> list[int]:
    return [each["collections"] for each in gc.get_stats()]


def _multiprocessing_name(modules: Any) -> str:
    try:  # a collection may come while it is being imported, or torn down
        return str(modules["multiprocessing.process"].current_process().name)
    except Exception:
        return ""


def _new_ring(folder: str, forked_from: int) -> Any:
    """Words of a new ring, which the reader finds as soon as it is whole; None where none can be
    made: without a folder the reader is gone, and otherwise a file's name tells it why.
    """
    path = os.path.join(folder, "%d-%d" % (os.getpid(), monotonic_ns()))  # noqa: PTH118, UP031
    try:
        return _made(path, forked_from)
    except OSError as error:
        try:
            if os.path.exists(path):  # noqa: PTH110
                os.unlink(path)  # noqa: PTH108
            name = "%s.%d" % (path, error.errno or 0)  # noqa: UP031
            os.mknod(name, 0o600)  # which needs no descriptor, where there may be none left
        except OSError:
            pass
        return None


def _made(path: str, forked_from: int) -> Any:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        # A page that is not there yet, of a file system that is full, would be a SIGBUS.
        os.posix_fallocate(descriptor, 0, SIZE)
        # Before 3.13 a mapping keeps a descriptor of its own.
        ring = mmap(descriptor, SIZE, **({"trackfd": False} if sys.version_info >= (3, 13) else {}))
    finally:
        os.close(descriptor)
    words = memoryview(ring).cast("q")
    words[VERSION], words[FORKED_FROM] = MAGIC, forked_from
    for at, word in enumerate(_image(), IMAGE):
        words[at] = word
    _write(words, PYTHON, COMMAND, sys.version.split()[0])
    command = getattr(sys, "orig_argv", [sys.executable or ""])
    _write(words, COMMAND, TEXT_END, "\0".join(command))
    os.rename(path, path + ".ring")  # noqa: PTH104
    return words


def _image() -> tuple[int, int, int, int]:
    namespace, started, stack = 0, 0, 0
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
        # A file object would touch pages that a fork then has to copy.
        descriptor = os.open("/proc/self/stat", os.O_RDONLY)
        try:
            fields = os.read(descriptor, 4096).rpartition(b")")[2].split()
        finally:
            os.close(descriptor)
        started, stack = int(fields[19]), int(fields[25])
    except (OSError, ValueError, IndexError):  # there may be no /proc, or no descriptor
        pass
    return namespace, os.getpid(), started, stack


def _write(words: Any, at: int, end: int, text: str) -> None:
    content = text.encode("utf-8", "replace")[: end - at]
    words.cast("B")[at:end] = content + bytes(end - at - len(content))
