"""AGCUs that load A beside a vector or a tile: all of them where that takes less time."""

import pytest

from hw.arch.config import named
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.kernels.linear import linear
from sw.kernels.matmul import matmul
from sw.kernels.residual import residual


def compiled(kernel, config, sizes):
    return compile_kernel(kernel, named[config], dims=dict(zip("MKN", sizes)), dtype=bf16)


@pytest.mark.few(1)
@pytest.mark.parametrize("kernel", [linear, residual])
@pytest.mark.parametrize(
    ("config", "sizes"), [("small", (512, 512, 24)), ("large", (205, 737, 91))]
)
def test_inputs_beside_the_sums_cost_few_cycles_where_a_is_large(kernel, config, sizes):
    alone = compiled(matmul, config, sizes).predicted_cycles
    assert compiled(kernel, config, sizes).predicted_cycles <= 1.2 * alone


def test_a_large_tile_keeps_a_port_beside_a_small_operand():
    """With both AGCUs for A, a tile of more bytes would come at one port."""
    (part,) = compiled(residual, "small", (740, 22, 160)).parts
    assert len(part.fit.a_agcus) == 1
    assert len(part.fit.sides) == 2
