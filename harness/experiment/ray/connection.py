"""The connection to a Ray cluster, as long as a command has it."""

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Any

from harness.experiment.ray.address import reachable
from harness.experiment.ray.cluster import EVERY_NODE, Cluster, WantedNodes
from harness.experiment.ray.error import ClusterError, cluster_reason
from harness.experiment.ray.of_our_own import LOCAL, of_our_own
from harness.machine.interrupts import INTERRUPTS

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # it reports nothing to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a task without GPUs hides none from others
}
"""For Ray, unless the user has set it."""


@contextmanager
def connected(address: str, wanted: WantedNodes = EVERY_NODE) -> Iterator[Cluster]:
    """A cluster at an address that Ray knows, or one on this machine alone for `LOCAL`.

    Raises ClusterError where there is none, it is of another Ray or Python, or no node can
    measure, and ModuleNotFoundError without Ray.
    """
    if find_spec("ray") is None:
        raise ModuleNotFoundError("No module named 'ray'", name="ray")
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with ExitStack() as stack:
        known = stack.enter_context(of_our_own()) if address == LOCAL else reachable(address)
        import ray  # only now: it reads its environment once

        _quieten()
        handlers = {number: signal.getsignal(number) for number in INTERRUPTS}
        options: dict[str, Any] = {
            "address": known,
            "log_to_driver": False,
            "logging_level": "CRITICAL",
        }
        try:
            ray.init(**options)
        except ConnectionError as error:
            raise ClusterError(
                f"--cluster {address}: no Ray cluster can be reached from here; "
                "`ray start` makes this machine a node of one, and --cluster local needs none"
            ) from error
        except (RuntimeError, ValueError, OSError) as error:
            raise ClusterError(f"--cluster {address}: {cluster_reason(error)}") from error
        finally:
            for number, handler in handlers.items():  # Ray would end the program at SIGTERM
                signal.signal(number, handler)
        cluster = Cluster(address, ray.get_runtime_context().gcs_address, wanted)
        stack.callback(_disconnect, cluster)
        cluster.admit()
        if not cluster.nodes:
            raise ClusterError(f"--cluster {address}: no node can measure: {_told(cluster)}")
        yield cluster


def _disconnect(cluster: Cluster) -> None:
    """Part from it; not with a word where it is gone, for Ray would end this process over that."""
    import ray

    if cluster.is_gone:
        atexit.unregister(ray.shutdown)
    else:
        ray.shutdown()


def _quieten() -> None:
    """Keep Ray's own words about nodes and workers that die off standard output, where it prints
    them whatever it is told: a result may be there. They are in its log, and ours come as errors.
    """
    from ray._private import worker

    worker.print_to_stdstream = lambda *_, **__: None


def _told(cluster: Cluster) -> str:
    """Why nodes are left out, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, why in cluster.left_out.items():
        by_reason.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason.items())
