"""Text after each pass of some compilations: files in ``tests/sw/passes/texts``.

``.venv/bin/python -m tests.sw.passes.texts`` writes them anew.
"""

from pathlib import Path

from hw.arch.config import named
from hw.numeric.formats import bf16, fp32, int8
from sw.compiler import compile_kernel
from sw.kernels.gemm import gemm
from sw.kernels.matmul import matmul
from sw.kernels.silu import silu
from sw.kernels.softmax import softmax

__all__ = ["COMPILATIONS", "FOLDER", "text_of"]

FOLDER = Path(__file__).with_suffix("")
#: Chip, kernel, sizes, operand format and result format by name.
COMPILATIONS = {
    "matmul_tiny": ("tiny", matmul, {"M": 20, "N": 9, "K": 33}, bf16, None),
    "matmul_small": ("small", matmul, {"M": 256, "N": 256, "K": 256}, int8, None),
    "matmul_wide": ("small", matmul, {"M": 65, "N": 40, "K": 100}, bf16, fp32),
    "gemm_tiny": ("tiny", gemm, {"M": 12, "N": 30, "K": 50}, bf16, None),
    "gemm_small": ("small", gemm, {"M": 77, "N": 100, "K": 64}, int8, None),
    "softmax_small": ("small", softmax, {"M": 70, "N": 50}, bf16, None),
    "silu_small": ("small", silu, {"M": 70, "N": 50}, bf16, None),
}


def text_of(name: str) -> str:
    """Text after each pass, each below a line with the name of the pass."""
    config, kernel, dims, dtype, out = COMPILATIONS[name]
    result = compile_kernel(kernel, named[config], dims=dims, dtype=dtype, out=out)
    return "\n".join(f"=== {after}\n{text.rstrip()}\n" for after, text in result.texts.items())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in COMPILATIONS:
        (FOLDER / f"{each}.txt").write_text(text_of(each))
