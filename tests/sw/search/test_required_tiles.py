"""Tile sizes that a schedule requires bound blocks of a plan, or the report has the least one."""

import numpy as np
import pytest

import tilewright as tw
from hw.arch.config import named
from hw.arch.errors import BadInputError
from hw.numeric.formats import bf16, int8
from sw.compiler import compile_kernel
from sw.kernels.gemm import gemm
from sw.passes.choices import planned_blocks

ROLES = {"i": "row", "j": "column", "k": "sum"}
SIDES = {"i": "M", "j": "N", "k": "K"}
LEAST = "the least that whole vectors, and rows for each AGCU, allow"


def compiled(dims, fmt, **choices):
    config = named["small"]
    return compile_kernel(gemm, config, dims=dims, dtype=fmt, schedule=tw.Schedule(**choices))


@pytest.mark.few(1)
@pytest.mark.parametrize("fmt", [bf16, int8], ids=lambda fmt: fmt.name)
def test_no_block_is_larger_than_its_tile_without_a_note(fmt, seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        dims = {name: int(rng.integers(1, 200)) for name in "MNK"}
        tile = {index: int(rng.integers(1, 200)) for index in "ijk" if rng.random() < 0.6}
        found = compiled(dims, fmt, tile=tile)
        blocks, report = planned_blocks(found.parts[0].plan), found.report()
        for index, asked in tile.items():
            had = blocks[ROLES[index]]
            larger = f"tile of {index}={asked} became {had}: {LEAST}"
            assert (larger in report) == (min(had, dims[SIDES[index]]) > asked), (dims, tile)


def test_a_tile_bounds_the_columns_of_a_pass():
    dims = dict.fromkeys("MNK", 256)
    plan = compiled(dims, bf16, tile={"j": 16}).parts[0].plan
    assert plan.columns == plan.pass_columns == 16
    plan = compiled(dims, bf16, tile={"j": 40}).parts[0].plan
    assert plan.columns == 32
    rule = "tile of `j` must be at least 64, the columns of a pass with col_par=8, not 16"
    with pytest.raises(BadInputError, match=rule):
        compiled(dims, bf16, tile={"j": 16}, col_par={"acc": 8})
