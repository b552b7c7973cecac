"""What several of the model's tests read."""

from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec

import pytest
from triton_process import TritonProcess


def _release(package: str) -> list[int]:
    return [int(part) for part in version(package).split(".")[:2]]


@pytest.fixture(scope="module")
def interpreted() -> Iterator[TritonProcess]:
    """Calls a function of the kernels under Triton's interpreter."""
    if find_spec("triton") is None:
        pytest.skip("Triton is not installed; its wheels are for Linux")
    if _release("triton") < [3, 7] and _release("numpy") >= [2, 4]:
        pytest.skip("loops in the interpreter of Triton 3.6 need NumPy before 2.4")
    with TritonProcess() as process:
        yield process
