"""Compilations end within seconds of CPU, products with element math on their sums among them."""

import time

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.kernels.linear import linear
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul

#: Seconds of CPU for any kernel on the named chips.
MOST = 5.0


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [matmul, linear, linear_gelu], ids=lambda each: each.name)
def test_products_compile_within_seconds(kernel):
    begin = time.process_time()
    compile_kernel(kernel, named["small"], dims={"M": 256, "N": 256, "K": 256}, dtype=bf16)
    assert time.process_time() - begin <= MOST
