"""The address of a Ray cluster: whether anything answers there."""

import socket

from harness.experiment.ray.error import ClusterError

_CONNECT_SECONDS = 5.0


def reachable(address: str) -> str:
    """The address, if anything answers there. Ray itself would try for a minute and more.

    Raises ClusterError.
    """
    if "://" in address:
        raise ClusterError(
            f"--cluster {address}: Ray Client keeps no order of results; run gcbench on a node of "
            "the cluster, with --cluster auto"
        )
    if address == "auto":
        return address
    if not can_connect(address):
        raise ClusterError(
            f"--cluster {address}: no Ray cluster answers there; `ray start --head` prints its "
            "address as HOST:PORT, and --cluster local needs none"
        )
    return address


def can_connect(address: str) -> bool:
    """Whether anything answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS):
            return True
    except (OSError, ValueError, OverflowError):
        return False
