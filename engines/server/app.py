"""The paths of the server and what is at each of them."""

import asyncio
import hmac
import re
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import msgspec
from aiohttp import web

from engines.protocol import EngineConfig, EngineDeadError
from engines.server.admission import Admission
from engines.server.answering import Answering
from engines.server.dialects import Chats, Completions, Dialect
from engines.server.engine_client import EngineClient
from engines.server.errors import ApiError, Handler, errors_as_json
from engines.server.generation import Generation
from engines.server.metrics import CONTENT_TYPE, ProcessTotals, ServerMetrics
from engines.server.openapi import Route, document
from engines.server.prompts import Prompts
from engines.server.request_bodies import Body, DetokenizeBody, TokenizeBody, decode
from engines.server.responses import ApiAnswer, ModelCard, Models, Text, Tokens, Version
from engines.server.settings import ServerSettings, is_loopback
from engines.server.tokenizer import TextTokenizer, conversation

_BODY_SECONDS = 30.0
_JSON = "application/json"
_MOST_ECHOED = 100
"""Characters of what was sent that an answer says again."""
_PORT = re.compile(r":\d{0,5}$")
"""At the end of a Host header; an IPv6 address is in brackets there."""
_OPEN_TO_ALL = frozenset({"/health", "/ping"})

try:
    _VERSION = version("gcbench")
except PackageNotFoundError:  # run from a checkout
    _VERSION = "unknown"

CollectorTotals = Callable[..., ProcessTotals]
"""``totals(process)`` of one process of the engine; sent to the core, so found by its name."""


class App:
    """Handlers and what they share."""

    def __init__(
        self,
        settings: ServerSettings,
        config: EngineConfig,
        client: EngineClient,
        totals: CollectorTotals,
    ) -> None:
        self._settings = settings
        self._config = config
        self._client = client
        self._totals = totals
        self._tokenizer = TextTokenizer(config.tokenizer)
        most = config.max_num_seqs + settings.max_queued
        self._prompts = Prompts(config, self._tokenizer, most)
        self._metrics = ServerMetrics(client, settings.model)
        self.admission = Admission(client, most)
        self._began = int(time.time())

    def application(self) -> web.Application:
        """For aiohttp to serve."""
        application = web.Application(
            middlewares=[errors_as_json, self._from_here, self._with_key],
            client_max_size=self._settings.max_body,
        )
        routes = self._routes()
        description = document(routes, _VERSION)

        async def describe(request: web.Request) -> web.Response:
            return web.Response(body=description, content_type=_JSON)

        ways = {"GET": web.get, "POST": web.post}
        application.add_routes(
            [web.get("/openapi.json", describe)]
            + [
                ways[each.method](each.path, each.handler, expect_handler=self._expected)
                for each in routes
            ]
        )
        return application

    def _routes(self) -> list[Route]:
        routes = [
            Route(
                "POST",
                f"/v1/{path}",
                partial(self._generate, dialect),
                dialect.body,
                {_JSON: ApiAnswer, "text/event-stream": None},
            )
            for path, dialect in (("completions", Completions()), ("chat/completions", Chats()))
        ]
        return [
            *routes,
            Route("GET", "/v1/models", self._models, None, {_JSON: Models}),
            Route("GET", "/health", self._health, None, {}),
            Route("GET", "/ping", self._health, None, {}),
            Route("POST", "/ping", self._health, None, {}),
            Route("GET", "/version", self._version, None, {_JSON: Version}),
            Route("POST", "/tokenize", self._tokenize, TokenizeBody, {_JSON: Tokens}),
            Route("POST", "/detokenize", self._detokenize, DetokenizeBody, {_JSON: Text}),
            Route("GET", "/metrics", self._metrics_text, None, {"text/plain": str}),
        ]

    @web.middleware
    async def _from_here(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Without a key only this machine may ask: not a page of another, by a name of its own
        that leads here.
        """
        name = _PORT.sub("", request.headers.get("Host", "localhost"))
        if not self._settings.api_key and not is_loopback(name.strip("[]")):
            raise ApiError(
                421, f"this server is not {name!r}; ask for it by the address that it says"
            )
        return await handler(request)

    @web.middleware
    async def _with_key(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        key = self._settings.api_key
        if key and request.path not in _OPEN_TO_ALL:
            scheme, _, given = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not _are_equal(given, key):
                raise ApiError(
                    401, "no valid API key in the Authorization header", code="invalid_api_key"
                )
        return await handler(request)

    async def _generate(self, dialect: Dialect, request: web.Request) -> web.StreamResponse:
        body = await self._read(request, dialect.body)
        self._check_model(body.model)
        asked = await dialect.asked(self._prompts, body)
        numbers = await self.admission.numbers(request, len(asked))
        answering = Answering(dialect, body, self._settings.model, asked, self._tokenizer.decode)
        seconds = self._settings.request_timeout
        with Generation(
            self._client, self._metrics, asked, numbers, body.priority or 0
        ) as generation:
            if body.stream:
                return await answering.stream(request, generation, seconds)
            try:
                async with asyncio.timeout(seconds):
                    return await answering.whole(generation)
            except TimeoutError:
                raise ApiError(408, f"not finished after {seconds:g} s") from None

    async def _read(self, request: web.Request, kind: type[Body]) -> Body:
        """The body. Raises ApiError 400, 408 where it does not come, 413 where it is too large."""
        if request.content_type != _JSON:
            raise ApiError(400, "the Content-Type must be application/json")
        self._check_length(request)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                data = await request.read()
        except TimeoutError:
            raise ApiError(408, f"the body had not come after {_BODY_SECONDS:g} s") from None
        except web.HTTPRequestEntityTooLarge:
            raise self._too_large() from None
        except web.RequestPayloadError as error:
            what = str(error).rpartition("message:")[2].strip()
            raise ApiError(400, f"the body is not what its headers say: {what}") from None
        return decode(data, kind)

    def _check_length(self, request: web.Request) -> None:
        if (request.content_length or 0) > self._settings.max_body:
            raise self._too_large()

    def _too_large(self) -> ApiError:
        return ApiError(413, f"the body is larger than {self._settings.max_body} bytes")

    async def _expected(self, request: web.Request) -> web.StreamResponse | None:
        """Whoever asks whether to send the body is told so, unless it is too large.

        No middleware is around it, so what it raised would be nobody's.
        """
        try:
            self._check_length(request)
        except ApiError as error:
            return error.response()
        if request.headers["Expect"].lower() != "100-continue":
            return ApiError(417, "of what can be expected there is 100-continue alone").response()
        if request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return None

    def _check_model(self, model: str | None) -> None:
        if model is not None and model != self._settings.model:
            raise ApiError(
                404,
                f"no model {model[:_MOST_ECHOED]!r} exists here; it is {self._settings.model!r}",
                param="model",
                code="model_not_found",
            )

    async def _models(self, request: web.Request) -> web.Response:
        model = ModelCard(
            id=self._settings.model,
            created=self._began,
            root=self._config.model,
            max_model_len=self._config.max_model_len,
        )
        return _json(Models([model]))

    async def _health(self, request: web.Request) -> web.Response:
        if self._client.failure:
            raise ApiError(503, f"the engine has died: {self._client.failure}")
        if self.admission.is_draining:
            raise ApiError(503, "the server is stopping")
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        return _json(Version(_VERSION))

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await self._read(request, TokenizeBody)
        self._check_model(body.model)
        text = conversation(body.messages) if body.messages else body.prompt
        if text is None:
            raise ApiError(400, "give a prompt or messages", param="prompt")
        (ids,) = await self._prompts.encoded(text)
        return _json(Tokens(len(ids), self._config.max_model_len, ids))

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = await self._read(request, DetokenizeBody)
        self._check_model(body.model)
        if body.tokens and (largest := max(body.tokens)) >= self._tokenizer.num_ids:
            there = self._tokenizer.num_ids
            raise ApiError(
                400, f"token id {largest} is none of the vocabulary's {there:,}", param="tokens"
            )
        return _json(Text(self._tokenizer.decode(body.tokens)))

    async def _metrics_text(self, request: web.Request) -> web.Response:
        try:
            front_end, core, *workers = await self._client.collective_rpc(self._totals)
        except EngineDeadError as error:
            raise ApiError(503, f"the engine has died: {error}") from None
        totals: dict[str, ProcessTotals] = {"frontend": front_end, "engine": core}
        totals |= {f"worker-{number}": each for number, each in enumerate(workers)}
        return web.Response(body=self._metrics.text(totals), headers={"Content-Type": CONTENT_TYPE})


def _are_equal(given: str, key: str) -> bool:
    """In constant time."""
    one, other = (each.encode(errors="surrogateescape") for each in (given, key))
    return hmac.compare_digest(one, other)


def _json(value: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type=_JSON)
