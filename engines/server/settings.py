"""How the server is to behave, beside how its engine is built."""

import ipaddress
import socket
from dataclasses import dataclass

API_KEY_VARIABLE = "GCBENCH_API_KEY"
"""Where the key is said best: other users can read a command line."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """``model``: the name that clients ask for. ``api_key``: "" for none. ``max_body`` bytes;
    ``max_queued`` requests beyond those of a full batch; ``max_connections`` open at once;
    ``idle_timeout`` seconds in which a connection must bring a request's whole head;
    ``request_timeout`` and ``grace`` seconds. ``access_log``: a file, "" for none.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str = ""
    max_body: int = 4 << 20
    max_queued: int = 4096
    max_connections: int = 8192
    idle_timeout: float = 30.0
    request_timeout: float = 600.0
    grace: float = 30.0
    access_log: str = ""

    def check(self) -> None:
        """Raise ValueError where anybody on the network could use it."""
        if not is_loopback(self.host) and not self.api_key:
            raise ValueError(
                f"--host {self.host}: others can reach this address, so an API key is needed; set "
                f"{API_KEY_VARIABLE}, or use --host 127.0.0.1"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that has the address and does not listen yet. Raises ValueError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"--host {host}: {reason}; give an address of this machine") from None
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise ValueError(
            f"--host {host} --port {port}: {error.strerror}; give another port, or 0 for any that "
            "is free"
        ) from None
    return bound


def url_of(bound: socket.socket) -> str:
    """Where clients reach it."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
