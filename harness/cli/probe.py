"""``gcbench probe``: which process of any Python program the collector stops."""

import resource
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
import psutil
from prometheus_client import start_http_server

from harness.cli.exit_codes import ExitCode
from harness.cli.say import say
from harness.cli.tell import Telling, checked, command_line, tell, telling, telling_options
from harness.machine.boot import boot_id
from harness.machine.describe import describe
from harness.machine.scratch import scratch_folder
from harness.probed.attached import watch_attached
from harness.probed.exposition import ProbedMetrics
from harness.probed.forwarded import held_back
from harness.probed.log import CollectionLog
from harness.probed.long_pauses import LongPauses
from harness.probed.result import ProbeResult
from harness.probed.run import run_probed, shared_memory
from harness.probed.watch import RingWatch
from harness.report.probe import progress_line

_HERE = "127.0.0.1"
EXAMPLES = """
\b
Examples:
  gcbench probe -- python server.py
  gcbench probe --json pauses.json -- vllm serve facebook/opt-125m
      any Python server, with all processes that it starts
  gcbench probe --pid 4711 --json pauses.json
      one that runs already, and those below it, until Ctrl-C (CPython 3.14)
  gcbench probe --log pauses.log -- python server.py
      for gcbench load URL --probe pauses.log: which gap was whose pause
  gcbench probe --prometheus 9464 -- uvicorn app:app --workers 4
      collections and pauses at http://127.0.0.1:9464/metrics
"""


@click.command(epilog=EXAMPLES, context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1)
@click.option(
    "--pid",
    type=click.IntRange(1),
    metavar="PID",
    help="Watch a program that runs already, instead of COMMAND, until it ends or Ctrl-C: from "
    "CPython 3.14 on.",
)
@click.option("--log", "log_path", metavar="FILE", help="Write every collection, for load --probe.")
@click.option(
    "--prometheus",
    metavar="[HOST:]PORT",
    help="Serve the figures for Prometheus while it runs. [default host: 127.0.0.1]",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Send the same figures to an OpenTelemetry collector, by OTLP over HTTP.",
)
@click.option(
    "--every",
    type=click.FloatRange(0, 10**6),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Say how it stands that often; 0: never.",
)
@click.option(
    "--long",
    type=click.FloatRange(0, 10**6, min_open=True),
    metavar="MS",
    help="Of pauses that long, say which line ran and what there was.",
)
@telling_options("json", "quiet")
@click.pass_context
def probe(
    ctx: click.Context,
    /,
    command: tuple[str, ...],
    pid: int | None,
    log_path: str | None,
    prometheus: str | None,
    otlp: str | None,
    every: float,
    long: float | None,
    **_: Any,
) -> None:
    """Say which processes of COMMAND, or of --pid, the garbage collector stopped, and for how long.

    Every Python from 3.8 on that COMMAND starts is watched, whatever it is; it needs no change. The
    report goes to standard error. The exit status is that of COMMAND, or 3 where that is 0 and no
    Python was watched. Signals that are sent to gcbench go through to COMMAND.
    """
    how = telling(ctx)
    if (pid is None) != bool(command):
        raise ValueError("name a COMMAND or a --pid: gcbench probe -- python server.py")
    if log_path == "-":
        raise ValueError("--log -: name a file")
    checked(log_path, "--log")
    boot = boot_id()
    began_ns, own_cpu_began = time.monotonic_ns(), time.process_time()
    line = _Line(began_ns, 0.0 if how.quiet else every)
    pauses = LongPauses() if long else None
    metrics = ProbedMetrics()
    export = None
    if otlp is not None:
        from harness.probed.otlp import OtlpExport  # packages of an extra

        export = OtlpExport(otlp, metrics.registry())
    with (
        CollectionLog(Path(log_path), boot) if log_path else nullcontext() as log,
        _served(prometheus, metrics),
        scratch_folder(shared_memory()) as folder,
    ):

        def watching(root: psutil.Process, *why_not: Callable[..., str]) -> RingWatch:
            nonlocal command
            command = command or tuple(root.cmdline())
            record = log.record if log else lambda *_: None
            return RingWatch(folder, root, command, record, metrics.series, pauses, *why_not)

        def look(watch: RingWatch) -> None:
            if log:
                log.has_read(watch.lost)
            line.look(watch)

        how_to_watch = (folder, watching, look, int((long or 0) * 1e6))
        if pid is None:
            status, watch = run_probed(command, *how_to_watch)
        else:
            status, watch = watch_attached(pid, *how_to_watch)
        own_cpu_seconds = time.process_time() - own_cpu_began
        code = status if status >= 0 else 128 - status
        try:
            left = watch.finish() if pid is None else watch.finish(0.0)
            # What outlives the command is still counted until here.
            wall_seconds = (time.monotonic_ns() - began_ns) / 1e9
            if log:
                log.has_read(watch.lost, is_end=True)
            if export and (not_sent := export.finish()):
                watch.note(not_sent)
            result = ProbeResult(
                name=shlex.join(command),
                command=command_line(),
                machine=describe(),
                status=status,
                began_ns=began_ns,
                wall_seconds=wall_seconds,
                boot_id=boot,
                processes=watch.processes(),
                not_probed=watch.not_probed(),
                own_cpu_seconds=own_cpu_seconds,
                own_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                long_pauses=pauses.longest_first if pauses else [],
                notes=[*_notes(left, log.failure if log else "", pid), *watch.notes],
            )
            code = code or (ExitCode.MEASURED if result.processes else ExitCode.NOT_MEASURED)
            _report(result, how)
        except Exception as error:
            if not code:
                raise
            say(f"the figures could not all be reported: {error}")  # the status is the command's
    ctx.exit(code)


def _report(result: ProbeResult, how: Telling) -> None:
    if not result.processes:
        say(_nothing(result))
    tell(result, how._replace(quiet=how.quiet or not result.processes), file=sys.stderr)


class _Line:
    """A line now and then on standard error, of how it stands."""

    def __init__(self, began_ns: int, every_seconds: float) -> None:
        self._began_ns, self._every = began_ns, every_seconds
        self._next = time.monotonic() + every_seconds

    def look(self, watch: RingWatch) -> None:
        """Say it, if it is time."""
        now = time.monotonic()
        if self._every and now >= self._next:
            self._next = now + self._every  # not one for each that was due while all stood still
            seconds = (time.monotonic_ns() - self._began_ns) / 1e9
            say(progress_line(watch.processes(), seconds))


@contextmanager
def _served(place: str | None, metrics: ProbedMetrics) -> Iterator[None]:
    """Figures for Prometheus at ``[HOST:]PORT``, if it is given. Raises ValueError."""
    if place is None:
        yield
        return
    host, _, port = place.rpartition(":")
    try:
        number = int(port)
        with held_back():  # by the server's thread
            server, thread = start_http_server(
                number, host.strip("[]") or _HERE, metrics.registry()
            )
    except (OSError, ValueError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(
            f"--prometheus {place}: {why}; give [HOST:]PORT, a port that is free"
        ) from error
    say(f"figures for Prometheus at http://{host or _HERE}:{server.server_address[1]}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _notes(left: Sequence[int], failure: str, attached_to: int | None) -> list[str]:
    notes = [f"From some moment on, {failure}."] if failure else []
    if left and attached_to is None:
        pids = ", ".join(map(str, left))
        notes.append(
            f"Watched no longer, because the command has ended, but still running: PID {pids}."
        )
    return notes


def _nothing(result: ProbeResult) -> str:
    """Why there is no figure at all."""
    if result.not_probed:
        each = result.not_probed[0]
        return f"nothing was measured: {each.name} ({each.pid}) had no probe, because {each.reason}"
    return (
        f"nothing was measured: {shlex.split(result.name)[0]} is not Python and started no Python "
        "process that was seen; name a Python program"
    )
