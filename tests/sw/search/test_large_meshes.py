"""Products on meshes with more PCUs than AGCUs store the results of, or with many AGCUs."""

import pytest

from hw.arch.agcu import AGCU_STREAMS
from hw.arch.config import AgcuConfig, ChipConfig
from hw.numeric.formats import bf16
from sw.compiler import compile_kernel
from sw.fabric.merges import MOST_COLLECTED
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints

MESH = ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=4))
MANY = ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=16))


def compiled(kernel, config, m, n, k):
    return compile_kernel(kernel, config, dims={"M": m, "N": n, "K": k}, dtype=bf16)


def test_grids_have_as_many_pcus_as_result_writers_take():
    product = compiled(matmul, MESH, 256, 256, 64).parts[0].product
    grids = {
        (plan.row_par, plan.col_par) for plan, _ in plans_of(product, MESH, Constraints(), slabs=1)
    }
    assert (
        max(rows * columns for rows, columns in grids)
        == MOST_COLLECTED * AGCU_STREAMS * MESH.agcu.count
    )
    # A grid that a schedule names is kept, to be refused in words.
    named = Constraints(row_par=16, col_par=8)
    assert {plan.col_par for plan, _ in plans_of(product, MESH, named, slabs=1)} == {8}


@pytest.mark.slow
def test_pcus_that_a_grid_cannot_have_run_the_phases_behind_it():
    (part,) = compiled(linear_gelu, MESH, 128, 256, 192).parts
    assert len(part.product.epilogue.codes) == 6
    (part,) = compiled(linear_gelu, MANY, 128, 256, 192).parts
    assert len(part.product.epilogue.codes) < 6


def test_a_vector_is_loaded_for_as_many_ports_as_a_command_waits_for():
    """A buffer for each of 16 ports would need 16 tokens a box, one more than a wait takes."""
    (part,) = compiled(linear_gelu, MANY, 256, 32, 256).parts
    ports = sum(len(each.ports) for each in part.fit.collectors)
    assert part.product.epilogue.latched is not None and ports <= 15
