"""see-h: units in an ECP5: LUTs, DSPs, block RAMs, placed clock; hard multipliers of arrays."""

import json

import pytest

from docs.tools.fpga_tables import FPGA_UNITS
from docs.tools.reports import report
from tilewright import main

GOAL = "≥ 5 units: LUT, DSP, BRAM, placed clock"
ARRAY = "--component array --rows 4 --cols 4 --format int8"


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.must("see-h", goal=GOAL)
def test_units_have_their_resources_and_a_placed_clock(figure):
    found = []
    for options in FPGA_UNITS:
        (unit,) = report(f"tilewright area --target ecp5 {options}")["units"]
        assert unit["luts"] > 0 < unit["flip_flops"] and unit["clock_mhz"] > 0, unit
        assert unit["note"] == ""
        found.append(f"{unit['name']}: {unit['luts']:,} LUTs, {unit['clock_mhz']:.1f} MHz")
    kinds = {options.split()[1] for options in FPGA_UNITS}
    assert len(kinds) >= 5
    figure("; ".join(found))


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.must("see-h", goal="a 4 × 4 int8 array with dsp: ≥ 16 MULT18X18D, fewer LUTs")
def test_an_array_with_hard_multipliers_has_dsps_in_the_place_of_luts(figure):
    gates, hard = (
        report(f"tilewright area --target ecp5 {ARRAY}{more}")["units"][0]
        for more in ("", " --multiplier dsp")
    )
    assert gates["dsps"] == 0 and hard["dsps"] >= 16 and hard["luts"] < gates["luts"]
    figure(f"{gates['luts']:,} LUTs, 0 DSPs; with dsp {hard['luts']:,} LUTs, {hard['dsps']} DSPs")


@pytest.mark.slow
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("dataflow", ["ws", "os", "is"])
@pytest.mark.must("see-h", goal="the same bits with hard multipliers")
def test_a_unit_with_hard_multipliers_has_the_bits_of_numpy(dataflow, tmp_path, seed, figure):
    file = tmp_path / "report.json"
    command = "sim systolic --rows 4 --cols 4 --format int8 --multiplier dsp --dataflow"
    words = [*command.split(), dataflow, "--seed", str(seed), "--json", str(file)]
    assert main(words) == 0
    found = json.loads(file.read_text())
    assert found["passed"] > 0 == found["failed"]
    figure(f"{dataflow}: {found['passed']} tests of products, equal to numpy")
