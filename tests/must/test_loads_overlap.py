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
    # What the units counted: cycles in which an AGCU moved a vector, and a PCU multiplied.
    counters = reports[2]["counters"].values()
    loads, computes = (
        max(unit["busy"] for unit in counters if unit["kind"] == kind) for kind in ("agcu", "pcu")
    )
    ratio = reports[1]["cycles"] / reports[2]["cycles"]
    figure(
        f"{reports[1]['cycles']:,} / {reports[2]['cycles']:,} cycles = {ratio:.2f}; "
        f"AGCU busy {loads:,}, PCU busy {computes:,} cycles"
    )
    assert max(loads, computes) / min(loads, computes) <= 1.4
    assert ratio >= 1.3
