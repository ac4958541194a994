"""Quick estimates of a product's plans: the best plan is early in their order, bounds hold."""

import itertools
import random

import pytest

from hw.arch.config import AgcuConfig, ChipConfig, named
from hw.numeric.formats import bf16, int8
from sw.compiler import compile_kernel
from sw.cost import predict
from sw.kernels.linear_gelu import linear_gelu
from sw.kernels.matmul import matmul
from sw.kernels.transposed.matmul_nt import matmul_nt
from sw.language import Schedule
from sw.passes import parallel
from sw.passes.choices import constraints_of
from sw.passes.compilation import Compilation
from sw.passes.kernel_steps import KERNEL_PASSES
from sw.passes.pass_driver import run_passes
from sw.passes.product_recognition import Product
from sw.stages.recognised import recognised
from tests.sw.search.all_opened import AllOpened

CHIPS = {
    **named,
    "12 x 8, 3 AGCUs": ChipConfig(rows=12, columns=8, agcu=AgcuConfig(count=3)),
    "8 x 8, 2 AGCUs": ChipConfig(rows=8, columns=8, agcu=AgcuConfig(count=2)),
    "16 x 16, 4 AGCUs": ChipConfig(rows=16, columns=16, agcu=AgcuConfig(count=4)),
}
#: Products whose best plan was behind the plans that the search looks at, or far behind the first.
SHAPES = [
    ("16 x 16, 4 AGCUs", matmul_nt, (159, 30, 534), bf16),
    ("large", matmul, (45, 67, 299), int8),
    ("large", matmul, (25, 81, 99), int8),
    ("large", matmul, (11, 123, 676), bf16),
    ("large", linear_gelu, (267, 68, 4), bf16),
    ("small", linear_gelu, (512, 8, 1024), bf16),
    ("8 x 8, 2 AGCUs", linear_gelu, (142, 449, 102), bf16),
    ("8 x 8, 2 AGCUs", matmul_nt, (16, 1024, 256), bf16),
]
#: Cycles of the plan that is chosen, where worse ones were.
CORPUS = [
    ("8 x 8, 2 AGCUs", linear_gelu, (228, 218, 24), bf16, 7_990),
    ("8 x 8, 2 AGCUs", linear_gelu, (115, 186, 7), bf16, 3_600),
    ("large", linear_gelu, (369, 330, 48), bf16, 21_900),
    ("large", linear_gelu, (101, 448, 8), bf16, 8_270),
    ("large", matmul_nt, (35, 360, 13), bf16, 850),
]
#: Plans that are all compared, and how much slower the best of those that the search looks at is.
MANY, MOST = 400, 1.03


def searched(chip, kernel, shape, dtype):
    """The products of a kernel, each with the plans that fit, in the order of their estimates."""
    config, schedule = CHIPS[chip], Schedule()
    sizes = dict(zip("MNK", shape, strict=True))
    whole = Compilation(kernel, config, sizes, dtype, None, {}, schedule, None)
    run_passes(KERNEL_PASSES, whole)
    for part in whole.division.parts:
        work = recognised(part.program, part.arrays, config)
        if isinstance(work, Product):
            yield parallel._Search(work, config, constraints_of(work, schedule)).fitting


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("chip", "kernel", "shape", "dtype"),
    SHAPES,
    ids=[f"{chip}-{kernel.name}-{'x'.join(map(str, n))}" for chip, kernel, n, _ in SHAPES],
)
def test_the_best_plan_is_one_of_those_that_the_search_looks_at(chip, kernel, shape, dtype):
    for plans in searched(chip, kernel, shape, dtype):
        cycles = [predict(*each) for each in itertools.islice(plans, MANY)]
        assert min(cycles[: parallel._FINALISTS]) <= MOST * min(cycles)


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "kernel", "shape", "dtype", "cycles"), CORPUS)
def test_the_faster_plan_is_chosen(chip, kernel, shape, dtype, cycles):
    sizes = dict(zip("MNK", shape, strict=True))
    found = compile_kernel(kernel, CHIPS[chip], dims=sizes, dtype=dtype)
    assert sum(part.prediction().kernel for part in found.parts) <= cycles


@pytest.mark.few(1)
@pytest.mark.parametrize("chip", ["large", "12 x 8, 3 AGCUs", "8 x 8, 2 AGCUs"])
def test_bounds_are_below_the_estimates_with_element_math_behind(chip, seed, draws, monkeypatch):
    monkeypatch.setattr(parallel, "BestFirst", AllOpened)
    draw = random.Random(seed)
    for _ in range(draws(2, 10)):
        shape = tuple(round(2 ** draw.uniform(0, 9)) for _ in range(3))
        print(chip, shape)
        assert [next(iter(plans)) for plans in searched(chip, linear_gelu, shape, bf16)]
