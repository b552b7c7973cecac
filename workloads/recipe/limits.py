"""The largest numbers that a workload can ask for."""

MAX_TOKENS = 2**24
"""The longest prompt or output, in tokens: the sum of two still fits int32 by far."""

MAX_REQUESTS = 10_000_000

MAX_SECONDS = 1e10
"""The latest arrival; squares of gaps are far from a float's end."""

MAX_ACCEPTED = 127
"""The most tokens one step can yield for a request: the table is int8."""


def check_range(low: int, high: int) -> None:
    """Raise ValueError unless both are lengths in tokens and in order."""
    if not 1 <= low <= high <= MAX_TOKENS:
        raise ValueError(
            f"low {low:,} and high {high:,} must be in order and from 1 to {MAX_TOKENS:,} tokens"
        )


def check_shares(shares: tuple[float, ...]) -> None:
    """Raise ValueError unless they are 0 or more each and sum to one, to a millionth."""
    negative = [share for share in shares if not share >= 0]
    if negative:
        raise ValueError(f"a share of {negative[0]:g} must be 0 or more")
    if not abs(sum(shares) - 1) <= 1e-6:
        raise ValueError(f"the shares must sum to 1, these sum to {sum(shares):.6g}")
