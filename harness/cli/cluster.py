"""The cluster that ``--cluster`` names: one connection as long as the command runs."""

import atexit
import os
from math import isfinite

import click

from harness.cli.exit_codes import ExitCode
from harness.experiment.lease import Lease
from harness.experiment.ray_cluster import EVERY_NODE, Cluster, WantedNodes
from harness.experiment.ray_connection import connected
from harness.experiment.ray_executor import RayExecutor
from harness.machine.doctor import DoctorFinding
from harness.report.header import machine_words

_KEY = "gcbench.cluster"


def cluster_at(address: str, wanted: WantedNodes = EVERY_NODE) -> Cluster:
    """The cluster, connected until the command has ended. Raises ClusterError."""
    top = click.get_current_context().find_root()
    if _KEY not in top.meta:
        top.meta[_KEY] = cluster = top.with_resource(connected(address, wanted))
        top.call_on_close(lambda: _leave_if_gone(cluster))
    found: Cluster = top.meta[_KEY]
    return found


def _leave_if_gone(cluster: Cluster) -> None:
    """End without Ray's own tidying up, which needs a cluster and crashes without one."""
    if cluster.is_gone:
        atexit.register(os._exit, ExitCode.NOT_MEASURED)


def node_findings(cluster: Cluster) -> list[DoctorFinding]:
    """Which nodes can measure, and why the others cannot."""
    machine = machine_words(cluster.identity.machine) if cluster.identity else ""
    unmeasured = cluster.unmeasured
    found = [
        DoctorFinding(
            "ok",
            node.name,
            f"{node.address}, {node.cpus:g} CPUs, {node.gpus:g} GPUs for Ray; "
            f"noise {'not measured' if node.name in unmeasured else 'measured'}; {machine}",
        )
        for node in cluster.nodes.values()
    ]
    advice = "gcbench measures on the others"
    return found + [
        DoctorFinding("warn", name, why, advice) for name, why in cluster.left_out.items()
    ]


def on_cluster(
    address: str, wanted: WantedNodes, timeout_seconds: float, lease: Lease
) -> RayExecutor:
    """The executor of its nodes. Raises ClusterError."""
    seconds = lease.limit_seconds if isfinite(lease.limit_seconds) else 0.0
    return RayExecutor(cluster_at(address, wanted), timeout_seconds, lease.anyway, seconds)
