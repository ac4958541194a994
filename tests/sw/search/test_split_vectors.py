"""Grids of which two passes are whole vectors of B and C, but one is not."""

import dataclasses
import random

import pytest

import sw.language as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, fp32, int8
from sim.run.driver import compile_job, run
from sim.run.job import Job, Problem
from sw.compiler import compile_kernel
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.kernels.transposed.matmul_tn import matmul_tn
from sw.kernels.transposed.matmul_tt import matmul_tt
from sw.passes.field_limits import Unfit, require_fields
from sw.search.candidates import plans_of
from sw.search.constraints import Constraints
from tests.sw.passes.test_units import product

#: Kernel, formats of operands and result, chip, PCU grid.
CASES = [
    (matmul, bf16, None, "small", (2, 3)),
    (matmul, bf16, fp32, "small", (1, 5)),
    (matmul_nt, bf16, None, "small", (1, 7)),
    (matmul_tt, bf16, None, "large", (3, 5)),
    (matmul_tn, bf16, None, "large", (6, 3)),
    (matmul, int8, None, "large", (3, 6)),
]
IDS = [f"{kernel.name}-{fmt.name}-{grid}" for kernel, fmt, _, _, grid in CASES]


def ragged(case, rng, *, blocks):
    """A problem with that grid, with so many blocks of columns, of which the last may be short."""
    kernel, fmt, out, chip, (row_par, col_par) = case
    config = named[chip]
    pair = 2 * col_par * config.grid_columns
    n = rng.randint((blocks - 1) * pair + 1, blocks * pair)
    dims = {"M": rng.randint(81, 160), "N": n, "K": rng.randint(20, 130)}
    schedule = tw.Schedule(row_par={"c": row_par}, col_par={"c": col_par})
    return Problem(kernel, config, dims, fmt, out, schedule=schedule)


def launched(problem, backend):
    """The plan of a product whose run golden verifies."""
    compiled, fields = compile_job(Job(problem, backend=backend))
    report = run(Job(problem, backend=backend), compiled, fields).report
    plan = compiled.parts[0].plan
    assert report["verified"], plan.describe()
    return plan


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_bits_are_those_of_golden(case, seed):
    rng = random.Random(seed)
    plan = launched(ragged(case, rng, blocks=rng.randint(1, 4)), "emulator")
    assert plan.grouped and plan.col_par == case[-1][1]
    assert plan.pass_columns % max(plan.lanes, plan.result_lanes)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_bits_are_those_of_the_rtl(case, seed, heavy):
    rng = random.Random(seed)
    launched(ragged(case, rng, blocks=rng.randint(1, 4)), "rtl")


def test_a_last_block_of_one_pass_stores_its_vectors_alone():
    wanted = product(256, 256, 256, bf16, bf16)
    plan = next(
        plan for plan, _ in plans_of(wanted, named["large"], Constraints(row_par=6, col_par=3))
    )
    assert plan.grouped and (plan.col_blocks, plan.spare_passes) == (6, 1)
    assert plan.b_split and plan.c_split and plan.last_vectors == 1


def test_halves_of_several_packets_take_slots_of_one_tile():
    wanted = product(64, 96, 256, int8, fp32)
    plan = next(
        plan for plan, _ in plans_of(wanted, named["large"], Constraints(row_par=3, col_par=6))
    )
    require_fields(dataclasses.replace(plan, b_slab=1))
    with pytest.raises(Unfit, match="Walk over the weights .* at most 4 address loops, not 5"):
        require_fields(dataclasses.replace(plan, b_slab=2))


def test_a_product_with_element_math_has_no_such_grid():
    schedule = tw.Schedule(col_par={"y": 3})
    dims = dict.fromkeys("MNK", 64)
    with pytest.raises(BadInputError, match="col_par of `y` must be one of 1, 2, 4, 6, 8, not 3"):
        compile_kernel(linear_gelu, named["small"], dims=dims, dtype=bf16, schedule=schedule)
