"""What goes wrong with a cluster, apart from whatever runs it."""


class ClusterError(RuntimeError):
    """The cluster cannot be used, or no longer; one sentence. What has ended is stored."""


def cluster_reason(error: Exception) -> str:
    """The first sentence of what an error, or what it was raised for, has to say."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if lines and lines[0].startswith("Version mismatch"):
        return f"{' '.join(lines)[:300]}; start both with one Ray and one Python"
    return (lines[0] if lines else type(cause).__name__).split(". ")[0].rstrip(".")
