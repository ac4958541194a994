"""pipe-c: products of few rows on `small` run at the speed of memory, default schedule."""

import pytest

from hw.arch.config import named


@pytest.mark.slow
@pytest.mark.must("pipe-c", goal="K = N = 1024: ≥ 0.88 of the compute and the memory bound")
@pytest.mark.parametrize("dtype", ["bf16", "int8"])
@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16])
def test_few_rows(rows, dtype, product, heavy, figure):
    side, config = 1024, named["small"]
    report = product("small", rows, side, side, dtype=dtype).run().report
    weights = side * side * (2 if dtype == "bf16" else 1)
    memory = weights / (config.agcu.count * config.width_bits // 8)
    compute = report["macs"] / report["peak_macs_per_cycle"]
    share = max(memory, compute) / report["cycles"]
    figure(f"M = {rows} {dtype}: {report['cycles']:,} cycles, {share:.3f} of the bound")
    assert report["verified"]
    assert share >= 0.88
