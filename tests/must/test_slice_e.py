"""slice-e: loads overlap computing: a second slot is worth 1.3 where both take as long."""

import pytest

#: Few columns, so that a block of A is loaded in about the time it is multiplied.
_SHAPE = (2048, 32, 128)


@pytest.mark.slow
@pytest.mark.must("slice-e", goal="cycles of one slot / of two ≥ 1.3, load and compute within 1.4")
def test_a_second_slot_overlaps(product, heavy, figure):
    reports = {
        slots: product("small", *_SHAPE, schedule=(("slots", slots),)).run().report
        for slots in (1, 2)
    }
    loads = reports[2]["dram_bytes_read"] / (2 * 32)
    computes = reports[2]["macs"] / reports[2]["peak_macs_per_cycle"]
    ratio = reports[1]["cycles"] / reports[2]["cycles"]
    figure(
        f"{reports[1]['cycles']:,} / {reports[2]['cycles']:,} cycles = {ratio:.2f}; "
        f"loads {loads:,.0f}, computing {computes:,.0f} cycles"
    )
    assert max(loads, computes) / min(loads, computes) <= 1.4
    assert ratio >= 1.3
