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
def test_two_lanes_take_at_most_seventeen_hundredths_of_a_pcu():
    without, beside = area(0), area(2)
    share = beside.cells / without.cells - 1
    print(f"{beside.cells} cells with lanes, {without.cells} without: {share:.1%} more")
    assert 0.1 < share <= 0.17
    assert beside.depth <= 105
