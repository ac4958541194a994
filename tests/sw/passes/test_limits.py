"""What loops of a plan need: a plan that is let through can be packed, others say why not."""

import dataclasses
import random

import pytest

from hw.arch.agcu import AgcuProgram
from hw.arch.config import AgcuConfig, ChipConfig, PmuConfig, named
from hw.arch.descriptor import MAX_BOX
from hw.arch.pmu import PmuProgram
from hw.numeric.division import ceil_div
from hw.numeric.formats import bf16, fp32, int8, int32
from sw.array_spec import ArraySpec
from sw.compiler import compile_kernel
from sw.kernels.matmul import matmul
from sw.passes.field_limits import Unfit, require_fields
from sw.passes.fit import fit
from sw.passes.plan import Plan
from sw.stages.lowering import lower
from sw.stages.product_graph import product_graph
from tests.sw.passes.test_units import product

SMALL = named["small"]


def packed(plan, config):
    """Lower a plan and pack every unit's program: what no field holds raises."""
    each = plan.product
    arrays = (
        ArraySpec("A", (each.m, each.k), each.fmt),
        ArraySpec("B", (each.k, each.n), each.fmt),
        ArraySpec("C", (each.m, each.n), each.out, output=True),
    )
    pmu = config.pmu
    places = fit(plan, {})
    netlist = lower(product_graph(plan, places, arrays), places.homes, config)
    for unit in netlist.units.values():
        if isinstance(unit, PmuProgram):
            unit.pack(
                width_bits=config.width_bits, capacity_bytes=pmu.capacity_bytes, slots=pmu.slots
            )
        elif isinstance(unit, AgcuProgram):
            unit.pack(config.token_tracks)


def random_plan(rng):
    """A plan of random blocks, few of which come near the ends of the fields."""
    config = ChipConfig(
        rows=rng.randint(2, 4),
        columns=4,
        width_bits=rng.choice((64, 128, 256, 512, 1024)),
        pmu=PmuConfig(capacity_bytes=1 << rng.randint(10, 14), slots=rng.randint(2, 64)),
        agcu=AgcuConfig(count=rng.randint(1, 4)),
    )
    fmt, out = rng.choice(((bf16, bf16), (bf16, fp32), (int8, int32)))
    lanes = config.width_bits // fmt.bits
    m, n, k = (1 << rng.randint(0, 9) for _ in range(3))
    col_par = rng.choice((1, 2, 4))
    width = col_par * config.grid_columns
    stride = max(width, lanes)
    passes = rng.randint(1, max(1, MAX_BOX // stride))
    rows = min(1 << rng.randint(0, 8), m, config.pcu.accumulator_rows)
    groups = min(rng.randint(1, 3), ceil_div(m, rows))
    tiles = ceil_div(k, lanes)
    slabs = [each for each in range(1, tiles + 1) if not tiles % each]
    most = max(1, MAX_BOX // lanes)
    a_slab, b_slab = (rng.choice([each for each in slabs if each <= most]) for _ in "ab")
    halves = stride // width
    return Plan(
        product(m, n, k, fmt, out),
        config,
        groups,
        col_par,
        rows,
        ceil_div(m, groups * rows),
        passes,
        halves,
        ceil_div(n, passes * stride),
        tiles,
        a_slab,
        b_slab,
        rng.random() < 0.5,
    ), config


def test_every_plan_that_is_let_through_can_be_packed(seed):
    rng = random.Random(seed)
    through = 0
    for _ in range(300):
        plan, config = random_plan(rng)
        try:
            require_fields(plan)
            fit(plan, {})
        except Unfit as error:
            assert "None" not in str(error) and error.rule and error.value is not None
            continue
        packed(plan, config)
        through += 1
    assert through >= 30


#: A plan that fits: 256 rows, one block of 64 columns, 8 tiles of 16.
PLAN = Plan(product(256, 64, 128, bf16, bf16), SMALL, 2, 2, 128, 1, 4, 1, 1, 8, 4, 4, True)


@pytest.mark.parametrize(
    ("capacity", "fmt", "changes", "message"),
    [
        (65536, bf16, {"row_blocks": 65_536}, "Count of blocks of rows must be at most 65535"),
        (65536, bf16, {"col_blocks": 20_000}, "Count of passes .* at most 65535, not 80000"),
        (65536, bf16, {"tiles": 262_144}, "Count of slabs of a panel of A .* not 65536"),
        (65536, bf16, {"rows": 32_768}, "Count of rows of a slab of A .* not 131072"),
        (1024, bf16, {"a_slab": 32}, "Stride between rows of A .* at most 511 .* not 512"),
        (2048, bf16, {"passes": 1}, None),
        (1024, int8, {"passes": 2, "b_slab": 1}, "blocks of B .* at most 511 .* not 1024"),
        (4096, bf16, {"passes": 8}, "tiles of B .* at most 2047 elements .* 4096 bytes, not 2048"),
        (512 << 2, bf16, {"b_slab": 1, "col_par": 8}, "passes over B .* at most 1023 .* not 1024"),
    ],
)
def test_what_a_field_does_not_hold_is_named_with_needs_and_haves(capacity, fmt, changes, message):
    config = dataclasses.replace(SMALL, pmu=PmuConfig(capacity_bytes=capacity))
    each = dataclasses.replace(PLAN.product, fmt=fmt, b_fmt=fmt, out=fmt.accumulator)
    plan = dataclasses.replace(PLAN, product=each, config=config, **changes)
    if message is None:
        require_fields(plan)
        return
    with pytest.raises(Unfit, match=message) as caught:
        require_fields(plan)
    assert str(caught.value.value) in str(caught.value) and caught.value.rule.startswith("at most")


@pytest.mark.parametrize(
    ("chip", "sides", "terms", "dtype"),
    [
        # Of 257 slabs the last has a tile less: its count needs a shift of 8 bits.
        ("tiny", (40, 40), 2049, bf16),
        ("tiny", (3, 5), 65_521, bf16),
        ("small", (40, 40), 16_411, int8),
        # 65,536 slabs of B, one tile each.
        pytest.param("small", (3, 5), 1_048_573, bf16, marks=pytest.mark.slow),
    ],
)
def test_long_sums_compile(chip, sides, terms, dtype):
    dims = {"M": sides[0], "N": sides[1], "K": terms}
    compile_kernel(matmul, named[chip], dims=dims, dtype=dtype)
