"""Where a server is, read from its URL."""

import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
EMBEDDINGS = "/embeddings"
_ENDS = ("/chat/completions", "/completions", EMBEDDINGS)
"""Of addresses as clouds show them; which of the first two is asked says how prompts are sent."""
_SECRETS = ("key", "token", "secret", "sig")


class Target(NamedTuple):
    """``path``: what stands before ``api``, "/v1" or "". ``query``: with its "?", "" for none.
    ``tls``: None without it. ``embeds``: whether it is asked for embeddings, not for tokens.
    """

    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None
    api: str = "/v1"
    query: str = ""
    embeds: bool = False

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"
        )

    @property
    def url(self) -> str:
        """It in full, without ``/v1`` where that says nothing."""
        asked = f"{self.api}{EMBEDDINGS}" if self.embeds else "/completions"
        end = "" if self.api and not self.embeds else asked
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{self.authority}{self.path}{end}{self.query}"


def parse_target(url: str, ca_file: str = "", *, insecure: bool = False) -> Target:
    """Read ``http://HOST[:PORT][/PATH][/v1[/chat/completions|/embeddings]][?QUERY]``.

    ``ca_file`` and ``insecure`` hold for https.

    Raises ValueError, in one sentence.
    """
    wanted = "give it as http://HOST:PORT"
    if not url.isprintable() or " " in url:
        raise ValueError(f"{url!r} is no address of a server; {wanted}")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{url}: {error}; {wanted}") from None
    if parts.scheme not in _PORTS:
        raise ValueError(f"{url}: {parts.scheme!r} is neither http nor https; {wanted}")
    is_secret = any(f"{each}=" in parts.query.lower() for each in _SECRETS)
    if parts.username or parts.password or is_secret:
        raise ValueError(f"an address must not hold a key, which would be stored; {wanted}")
    if not parts.hostname or parts.fragment or port == 0:
        raise ValueError(
            f"{url}: there is no host, or more than a path and a query behind it; {wanted}"
        )
    if not f"{parts.hostname}{parts.path}{parts.query}".isascii():
        raise ValueError(f"{url}: an address has ASCII characters only; {wanted}")
    path, api, embeds = parts.path.rstrip("/"), "/v1", parts.path.rstrip("/").endswith(EMBEDDINGS)
    for end in _ENDS:
        if path.endswith(end):
            path = path.removesuffix(end)
            api = "/v1" if path.endswith("/v1") else ""
            break
    path = path.removesuffix("/v1").rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    tls = _context(ca_file, insecure) if parts.scheme == "https" else None
    return Target(parts.hostname, port or _PORTS[parts.scheme], path, tls, api, query, embeds)


def _context(ca_file: str, insecure: bool) -> ssl.SSLContext:
    if insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or str(error)
        raise ValueError(f"--ca-file {ca_file}: {why}; name a PEM file of certificates") from None
