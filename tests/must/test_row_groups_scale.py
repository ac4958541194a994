"""slice-d: four row groups run near four times as fast as one, and one fills its PCU."""

import pytest


@pytest.mark.slow
@pytest.mark.must("slice-d", goal="ratio ≥ 3.6, one group uses ≥ 0.90 of one PCU")
def test_row_groups_scale(product, heavy, figure):
    m, n, k = 512, 256, 256
    cycles = {
        groups: product("small", m, n, k, schedule=(("row_par", groups), ("col_par", 1))).cycles()
        for groups in (1, 4)
    }
    ratio = cycles[1] / cycles[4]
    share = m * n * k / (128 * cycles[1])
    figure(f"{cycles[1]:,} / {cycles[4]:,} cycles = {ratio:.2f}; one PCU at {share:.3f}")
    assert ratio >= 3.6
    assert share >= 0.90
