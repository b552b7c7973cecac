"""What the server says of itself: an OpenAPI document, made from what it decodes and encodes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from engines.server.errors import ErrorBody, Handler

_VERSION = "3.1.0"
_REFERENCE = "#/components/schemas/{name}"


class Route(NamedTuple):
    """``body``: what it reads, None for nothing; ``answers``: a type for each kind of content, None
    where that is no single value.
    """

    method: str
    path: str
    handler: Handler
    body: type[msgspec.Struct] | None
    answers: dict[str, type | None]


def document(routes: Sequence[Route], version: str) -> bytes:
    """As JSON."""
    named = [kind for route in routes for kind in (route.body, *route.answers.values()) if kind]
    schemas, components = msgspec.json.schema_components(
        [ErrorBody, *named], ref_template=_REFERENCE
    )
    schema_of = dict(zip([ErrorBody, *named], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        error = _content({"application/json": schema_of[ErrorBody]}, "refused")
        answer = {kind: schema_of[each] if each else None for kind, each in route.answers.items()}
        operation: dict[str, Any] = {
            "responses": {"200": _content(answer, "done"), "4XX": error, "5XX": error}
        }
        if route.body is not None:
            body = {"application/json": {"schema": schema_of[route.body]}}
            operation["requestBody"] = {"content": body, "required": True}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return msgspec.json.encode(
        {
            "openapi": _VERSION,
            "info": {"title": "gcbench serve", "version": version},
            "paths": paths,
            "components": {"schemas": components},
        }
    )


def _content(schemas: dict[str, Any], description: str) -> dict[str, Any]:
    content = {kind: {"schema": each} if each else {} for kind, each in schemas.items()}
    return {"description": description} | ({"content": content} if content else {})
