"""What goes wrong with a cluster, apart from whatever runs it."""


class ClusterError(RuntimeError):
    """The cluster cannot be used, or no longer; one sentence. What has ended is stored."""
