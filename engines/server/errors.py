"""What a client is told that something is wrong: OpenAI's JSON form of an error."""

import logging
from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOGGER = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "service_unavailable_error",
}


class ErrorDetail(msgspec.Struct):
    """``param``: the field that is wrong; ``code``: OpenAI's name for what is wrong, if any."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(msgspec.Struct):
    """What a client gets."""

    error: ErrorDetail


class ApiError(Exception):
    """``param`` and ``code`` as in `ErrorDetail`."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code

    def body(self) -> bytes:
        """`ErrorBody` as JSON."""
        kind = _TYPES.get(self.status, "invalid_request_error")
        detail = ErrorDetail(self.message, kind, self.param, self.code)
        return msgspec.json.encode(ErrorBody(detail))

    def response(self) -> web.Response:
        """Of a request whose answer has not begun."""
        response = web.Response(
            status=self.status, body=self.body(), content_type="application/json"
        )
        if self.status in (429, 503):
            response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """All that is refused is refused in that form."""
    try:
        return await handler(request)
    except ApiError as error:
        return error.response()
    except web.HTTPException as error:
        refused = ApiError(error.status, _REASONS.get(error.status, error.reason)).response()
        if "Allow" in error.headers:
            refused.headers["Allow"] = error.headers["Allow"]
        return refused
    except (ConnectionError, TimeoutError):
        raise  # the client's, who has left
    except Exception as error:
        return internal_error(error).response()


def internal_error(error: Exception) -> ApiError:
    """What is the server's own fault; where it was made is said on standard error."""
    _LOGGER.error("internal error", exc_info=error)
    return ApiError(500, f"internal error: {type(error).__name__}: {error}")


_REASONS = {
    404: "there is nothing at this path; docs/serve.md lists what there is",
    405: "this path does not take this method",
}
