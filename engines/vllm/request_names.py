"""The numbers of requests, in the names that vLLM gives them.

It adds a random end to the number that the engine gave, and its API server a beginning; before
both stands which of several samples it is.
"""


def request_number(name: str) -> int | None:
    """None for a name that holds none, as the API server gives to clients that name nothing."""
    number = name.rpartition("_")[2].removeprefix("cmpl-").partition("-")[0]
    return int(number) if number.isdecimal() else None
