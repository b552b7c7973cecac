"""What stands for a GPU's package may be named, and never called."""

SCRIPT = """
import json, sys
from engines.sglang.stubs import GPU_PACKAGES, StubCalledError, stand_in_for
stand_in_for(*GPU_PACKAGES)
import flashinfer.comm as comm
from sgl_kernel import gemm, Layer
from vllm.model_executor.layers.activation import SiluAndMul

class Ours(Layer):
    def of(self, each: gemm | None) -> "None | gemm":
        return each

said = []
for call in (SiluAndMul, comm.workspace.make, lambda: gemm(1, out=2)):
    try:
        call()
    except StubCalledError as error:
        said.append(str(error))
try:
    import not_one_of_them
except ModuleNotFoundError as error:
    said.append(error.name)
print(json.dumps([Ours().of(1), hasattr(comm, "__version__"), *said]))
"""


def test_it_can_be_imported_and_inherited_from_and_an_error_names_what_is_called(fresh_interpreter):
    kept, has_version, silu, make, gemm, missing = fresh_interpreter(SCRIPT)
    assert (kept, has_version, missing) == (1, False, "not_one_of_them")
    assert "SGLang called vllm.model_executor.layers.activation.SiluAndMul, of a package" in silu
    assert "called flashinfer.comm.workspace.make," in make
    assert "called sgl_kernel.gemm," in gemm
