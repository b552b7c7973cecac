"""Questions to a server beside the run: is it there, which models has it, how does it fare."""

import http.client
import time
from typing import Any

import msgspec

from engines.openai.target import Target

_MOST_BYTES = 16 << 20
_POLL_SECONDS = 0.2


def get(target: Target, path: str, timeout_seconds: float, api_key: str = "") -> tuple[int, bytes]:
    """Status and body of a GET. Raises OSError where there is no answer of HTTP."""
    if target.tls is not None:
        connection = http.client.HTTPSConnection(
            target.host, target.port, timeout=timeout_seconds, context=target.tls
        )
    else:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=timeout_seconds)  # type: ignore[assignment]
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        connection.request("GET", f"{target.path}{path}{target.query}", headers=headers)
        response = connection.getresponse()
        return response.status, response.read(_MOST_BYTES)
    except http.client.HTTPException as error:
        raise ConnectionError(f"no answer of HTTP: {type(error).__name__}") from error
    finally:
        connection.close()


def wait_for(target: Target, seconds: float, api_key: str = "") -> bool:
    """Ask until the server says that it is well, for so long at most; whether it does.

    By ``/health``, or by ``/v1/models`` where that is not there.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            if any(
                get(target, path, 5.0, api_key)[0] == 200
                for path in ("/health", f"{target.api}/models")
            ):
                return True
        except OSError:
            pass
        if time.monotonic() + _POLL_SECONDS > deadline:
            return False
        time.sleep(_POLL_SECONDS)


class _Model(msgspec.Struct):
    id: str
    max_model_len: Any = None
    context_length: Any = None
    context_window: Any = None


class _Models(msgspec.Struct):
    data: list[_Model]


def first_model(target: Target, api_key: str = "") -> str:
    """The first model that the server says it has.

    Raises ValueError where it says none, OSError where it does not answer.
    """
    status, models = _models(target, api_key)
    if models:
        return models[0].id
    why = f"status {status}" if status != 200 else "no list of models"
    hint = "; give a key with --api-key" if status in (401, 403) else "; name one with --model"
    raise ValueError(f"{target.url}: {target.api}/models answers with {why}{hint}")


def context_length(target: Target, model: str, api_key: str = "") -> int | None:
    """How many tokens a request to that model may have, None where nobody says."""
    try:
        _, models = _models(target, api_key)
    except OSError:
        return None
    named = [each for each in models if each.id == model]
    lengths = [
        length
        for each in named
        for length in (each.max_model_len, each.context_length, each.context_window)
        if type(length) is int and length > 0
    ]
    return lengths[0] if lengths else None


def _models(target: Target, api_key: str) -> tuple[int, list[_Model]]:
    """The status, and the models that it says it has, none where that is no list of any."""
    status, body = get(target, f"{target.api}/models", 10.0, api_key)
    try:
        return status, msgspec.json.decode(body, type=_Models).data if status == 200 else []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return status, []
