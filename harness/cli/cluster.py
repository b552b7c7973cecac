"""The cluster that ``--cluster`` names: one connection as long as the command runs."""

from math import isfinite

import click

from harness.experiment.lease import Lease
from harness.experiment.ray_cluster import Cluster, connected
from harness.experiment.ray_executor import RayExecutor
from harness.machine.doctor import Finding
from harness.report.header import machine_words

_KEY = "gcbench.cluster"


def cluster_at(address: str, without: str) -> Cluster:
    """The cluster, connected until the command has ended. Raises ClusterError."""
    top = click.get_current_context().find_root()
    if _KEY not in top.meta:
        names = {name.strip() for name in without.split(",") if name.strip()}
        top.meta[_KEY] = top.with_resource(connected(address, names))
    found: Cluster = top.meta[_KEY]
    return found


def node_findings(cluster: Cluster) -> list[Finding]:
    """Which nodes can measure, and why the others cannot."""
    machine = machine_words(cluster.machine) if cluster.machine else ""
    found = [
        Finding("ok", node.name, f"{node.address}, {node.cpus:g} CPUs, {node.gpus:g} GPUs for Ray; "
                f"{machine}")
        for node in cluster.nodes.values()
    ]  # fmt: skip
    advice = "gcbench measures on the others"
    return found + [Finding("warn", name, why, advice) for name, why in cluster.left_out.items()]


def on_cluster(address: str, without: str, timeout_seconds: float, lease: Lease) -> RayExecutor:
    """The executor of its nodes. Raises ClusterError."""
    seconds = lease.limit_seconds if isfinite(lease.limit_seconds) else 0.0
    cluster = cluster_at(address, without)
    notes = [f"Node {name} is left out: {why}." for name, why in cluster.left_out.items()]
    return RayExecutor(cluster, timeout_seconds, lease.anyway, seconds, notes)
