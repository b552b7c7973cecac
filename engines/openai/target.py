"""Where a server is, read from its URL."""

import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Target(NamedTuple):
    """``path``: what stands before ``/v1``, "" for nothing. ``tls``: None without it."""

    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            host if self.port == _PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"
        )

    @property
    def url(self) -> str:
        """It in full, without ``/v1``."""
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.path}"


def parse_target(url: str, ca_file: str = "", *, insecure: bool = False) -> Target:
    """Read ``http://HOST[:PORT][/PATH][/v1]``; ``ca_file`` and ``insecure`` hold for https.

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
    if parts.username or parts.password:
        raise ValueError(f"an address must not hold a key, which would be stored; {wanted}")
    if not parts.hostname or parts.query or parts.fragment or port == 0:
        raise ValueError(f"{url}: there is no host, or more than a path behind it; {wanted}")
    if not f"{parts.hostname}{parts.path}".isascii():
        raise ValueError(f"{url}: an address has ASCII characters only; {wanted}")
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    tls = _context(ca_file, insecure) if parts.scheme == "https" else None
    return Target(parts.hostname, port or _PORTS[parts.scheme], path, tls)


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
