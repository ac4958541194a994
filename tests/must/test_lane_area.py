"""unit-g: area of a PCU with lanes beside that of one without."""

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
@pytest.mark.timeout(1800)
@pytest.mark.must("unit-g", goal="two lanes: <= 17 % of a PCU, with fused softmax <= 20 %")
def test_lanes_take_a_small_share_of_a_pcu(figure):
    """With lanes come the parts of fused softmax in the matrix unit."""
    without, one, beside = area(0), area(1), area(2)
    lanes = sum(
        each.cells * each.instances for each in beside.definitions if each.name.startswith("lane")
    )
    share, all_share = lanes / without.cells, beside.cells / without.cells - 1
    one_share = one.cells / without.cells - 1
    figure(f"two lanes {share:.1%}, all with them {all_share:.1%}, with one lane {one_share:.1%}")
    assert 0.1 < share <= 0.17
    assert share < all_share <= 0.20
    assert 0.1 < one_share <= 0.13
    assert beside.depth <= 105
