"""The server's life: engine, port, requests, and a graceful end."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import uvloop
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from engines.protocol import EngineConfig, EngineDeadError, SamplingParams
from engines.server.access_log import access_log
from engines.server.app import App, CollectorTotals
from engines.server.connections import Connections, raised_descriptor_limit
from engines.server.engine_client import EngineClient
from engines.server.settings import ServerSettings, bound_socket, url_of

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BACKLOG = 4096
_LAST_BYTES_SECONDS = 2.0
_LOGGER = logging.getLogger(__name__)
_LOGGER.addFilter(lambda record: not _is_the_clients(record))
_WARM_UP_FIRST = 2**62
_WARM_UP_REQUESTS, _WARM_UP_TOKENS = 8, 8


class Hooks(NamedTuple):
    """What the server needs from outside; the first two are sent to the core by their names.

    ``prepare(process)`` sets the collector of each process once it is warm: why it cannot be, or
    "". ``totals(process)``: what the collector of one has done. ``ready(url)`` is called once.
    """

    prepare: Callable[..., str]
    totals: CollectorTotals
    ready: Callable[[str], object]


def serve_engine(settings: ServerSettings, config: EngineConfig, hooks: Hooks) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP, then let running requests end.

    Raises ValueError where it cannot be served as asked, EngineDeadError where the engine core
    ends by itself, KeyboardInterrupt where it is interrupted before it is ready.
    """
    settings.check()
    before = [(number, signal.getsignal(number)) for number in _SIGNALS]
    try:
        with (
            raised_descriptor_limit(),  # which the core inherits
            bound_socket(settings.host, settings.port) as bound,
            access_log(settings.access_log) as access,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(Server(settings, config, hooks, access).run(bound))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before:
            signal.signal(number, handler)


class Server:
    """One run of it."""

    def __init__(
        self,
        settings: ServerSettings,
        config: EngineConfig,
        hooks: Hooks,
        access: logging.Logger | None,
    ) -> None:
        self._settings, self._access = settings, access
        self._config = config
        self._hooks = hooks
        self._stopping = asyncio.Event()
        self._is_urgent = asyncio.Event()
        self._is_ready = False

    async def run(self, bound: socket.socket) -> None:
        """Until it is told to stop, on a socket that does not listen yet."""
        self._obey_signals()
        client = EngineClient(self._config)
        try:
            await client.start()
            await warm_up_server(client, self._config)
            app = App(self._settings, self._config, client, self._hooks.totals)
            if refusals := [
                each for each in await client.collective_rpc(self._hooks.prepare) if each
            ]:
                raise ValueError(refusals[0])
            await self._serve(app, client, bound)
        finally:
            await client.stop()
        if client.failure:
            raise EngineDeadError(client.failure)

    async def _serve(self, app: App, client: EngineClient, bound: socket.socket) -> None:
        runner = web.AppRunner(
            app.application(),
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=_LAST_BYTES_SECONDS,
        )
        await runner.setup()
        connections = Connections(runner.server, self._settings, _LOGGER, self._access)
        listener = await asyncio.get_running_loop().create_server(
            connections, sock=bound, backlog=_BACKLOG
        )
        try:
            self._is_ready = True
            self._hooks.ready(url_of(bound))
            await _first_of(self._stopping, client.is_dead)
            app.admission.is_draining = True
            await self._drain(client)
        finally:
            listener.close()
            await runner.cleanup()

    async def _drain(self, client: EngineClient) -> None:
        """Let requests end, for as long as is asked for; then end them."""
        idle = asyncio.create_task(client.idle())
        urgent = asyncio.create_task(self._is_urgent.wait())
        await asyncio.wait(
            {idle, urgent}, timeout=self._settings.grace, return_when=asyncio.FIRST_COMPLETED
        )
        idle.cancel()
        urgent.cancel()
        client.abort_all()

    def _obey_signals(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop() -> None:
            if not self._is_ready:
                task.cancel()
            elif self._stopping.is_set():
                self._is_urgent.set()
            self._stopping.set()

        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                loop.add_signal_handler(number, stop)


async def warm_up_server(client: EngineClient, config: EngineConfig) -> None:
    """A few requests of nobody's, so that what is made once is there before the collector is set.

    Raises EngineDeadError where the engine ends.
    """
    prompt = np.zeros(1, np.int32)
    params = SamplingParams(min(_WARM_UP_TOKENS, config.max_model_len - len(prompt)))
    count = min(_WARM_UP_REQUESTS, config.max_num_seqs)
    numbers = range(_WARM_UP_FIRST, _WARM_UP_FIRST + count)
    for number, stream in [(each, client.add(each, prompt, params, 0)) for each in numbers]:
        while not (await stream.get()).finished:
            pass
        client.leave(number, is_finished=True)
    await client.idle()
    if client.failure:
        raise EngineDeadError(client.failure)


def _is_the_clients(record: logging.LogRecord) -> bool:
    """Whether aiohttp has something to say of what a client sent; anybody could fill a disk so."""
    clients = (HttpProcessingError, web.RequestPayloadError)
    return bool(record.exc_info and isinstance(record.exc_info[1], clients))


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
