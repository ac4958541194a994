"""slice-c: utilization of `small`, cold, at a latency of 100 cycles, default schedule."""

import pytest

#: Largest cycles of a product of side n: 256³ at 0.80, 512³ at 0.88 of 1,024 products a cycle.
_GOALS = {256: 20_480, 512: round(512**3 / 1024 / 0.88)}


@pytest.mark.slow
@pytest.mark.must("slice-c", goal="256³ at 0.80, 512³ at 0.88, bf16 and int8")
@pytest.mark.parametrize(("dtype", "products"), [("bf16", 1), ("int8", 2)])
@pytest.mark.parametrize("side", _GOALS)
def test_utilization(dtype, products, side, product, heavy, figure):
    report = product("small", side, side, side, dtype=dtype).run().report
    figure(f"{side}³ {dtype}: {report['cycles']:,} cycles, {report['utilization']:.4f}")
    assert report["peak_macs_per_cycle"] == 1024 * products
    assert report["cycles"] <= _GOALS[side] / products


@pytest.mark.slow
@pytest.mark.must("slice-c", goal="256³ at 0.80, 512³ at 0.88, bf16 and int8")
def test_operands_change_no_cycle(product, heavy):
    cycles = {product("small", 256, 256, 256, seed=seed).cycles() for seed in (4, 5)}
    assert len(cycles) == 1
