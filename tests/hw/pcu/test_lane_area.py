"""Area of a PCU with two lanes beside that of one without."""

import pytest

from gen.area import measure
from gen.unit_designs import UnitDesign
from gen.verilog import emit
from hw.arch.config import PcuConfig
from hw.pcu.unit import Pcu


def area(lanes):
    config = PcuConfig(lanes=lanes, function_bits=16)
    return measure(UnitDesign("pcu", 1, emit(Pcu(width_bits=256, config=config))))


@pytest.mark.slow
def test_two_lanes_take_at_most_seventeen_hundredths_of_a_pcu_and_all_with_them_twenty():
    """With lanes come the parts of fused softmax in the matrix unit."""
    without, beside = area(0), area(2)
    lanes = sum(
        each.cells * each.instances for each in beside.definitions if each.name.startswith("lane")
    )
    share, all_share = lanes / without.cells, beside.cells / without.cells - 1
    print(f"{without.cells} cells without lanes; lanes {share:.1%}, all {all_share:.1%} more")
    assert 0.1 < share <= 0.17
    assert share < all_share <= 0.20
    assert beside.depth <= 105
