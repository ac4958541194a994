"""unit-k: faults planted in the vector side, the streams and the launch, each caught by a test."""

import pytest

from tests.must.mutants import Mutant, require_killed

#: By what they are.
FAULTS = {
    "ties of the multiply-add unit are rounded up": Mutant(
        "hw/float/aligned_sum.py",
        "over_half | (half_or_more & kept[0])",
        "over_half | half_or_more",
        "tests/hw/pcu/test_lane_units.py",
    ),
    "the phases begin anew a packet early": Mutant(
        "hw/pcu/lane_issue.py",
        "Mux(number + 1 == program.count, 0, number + 1)",
        "Mux(number + 2 == program.count, 0, number + 1)",
        "tests/hw/pcu/test_lanes.py",
    ),
    "the shift of a count is logical": Mutant(
        "hw/lib/loop_nest.py",
        "(sums[i] >> program[i].shift",
        "(sums[i].as_unsigned() >> program[i].shift",
        "tests/hw/lib/test_loop_nest.py",
    ),
    "`final` begins a group one tile late": Mutant(
        "hw/pcu/unit.py",
        "m.d.sync += begins.eq(weight.payload.final |",
        "m.d.sync += (late := Signal()).eq(weight.payload.final)\n"
        "            m.d.sync += begins.eq(late |",
        "tests/hw/pcu/test_groups.py",
    ),
    "sums wrap one tile early": Mutant(
        "hw/pcu/unit.py",
        "self.config.by_group & ~begins)",
        "self.config.by_group & ~begins & ~weight.payload.final)",
        "tests/hw/pcu/test_groups.py",
    ),
    "the checksum of an image is ignored": Mutant(
        "hw/command/fetch.py",
        "self._checksum.o_value != self.o_entry.header.checksum",
        "Const(0)",
        "tests/hw/command/test_refusals.py",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_its_test(fault, copy):
    require_killed(FAULTS[fault], copy)
