"""pipe-b: utilization of products, cold, at a latency of 100 cycles, default schedule."""

import pytest

#: Chip, rows, columns and terms of a product, format, least utilization.
POINTS = [
    ("small", 256, 256, 256, "bf16", 0.915),
    ("small", 512, 512, 512, "bf16", 0.985),
    ("small", 1024, 1024, 1024, "bf16", 0.985),
    ("small", 256, 256, 256, "int8", 0.85),
    ("small", 512, 512, 512, "int8", 0.97),
    ("large", 256, 256, 256, "bf16", 0.82),
    ("large", 512, 512, 512, "bf16", 0.95),
    ("large", 1024, 1024, 1024, "bf16", 0.96),
    ("small", 128, 128, 1024, "bf16", 0.88),
    ("small", 64, 1024, 64, "bf16", 0.70),
    ("small", 251, 257, 263, "bf16", 0.80),
]
#: Most cycles from the launch write to the first multiply-accumulate of 256³ on `small`.
FIRST = 640
GOAL = "shares of the peak by shape (the table of the test); first multiply within 640 cycles"

pytestmark = [pytest.mark.slow, pytest.mark.must("pipe-b", goal=GOAL)]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("config", "m", "n", "k", "dtype", "goal"), POINTS)
def test_products_come_near_the_peak(config, m, n, k, dtype, goal, product, heavy, figure):
    report = product(config, m, n, k, dtype=dtype).run().report
    share = report["utilization"]
    figure(f"{config} {m} × {n} × {k} {dtype}: {report['cycles']:,} cycles, {share:.4f}")
    macs = m * n * k / report["peak_macs_per_cycle"]
    assert report["verified"] and share == pytest.approx(macs / report["cycles"], abs=1e-4)
    assert share >= goal


def test_the_first_multiply_follows_the_launch(product, heavy, figure):
    first = product("small", 256, 256, 256).run().report["launch_to_first_mac"]
    figure(f"{first} cycles to the first multiply-accumulate of 256³")
    assert first <= FIRST
