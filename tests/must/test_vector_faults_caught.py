"""unit-k: faults planted in the vector side, the streams and the launch, each caught by a test."""

import pytest

from tests.must.mutants import Mutant, require_killed

_PAIR = "tests/hw/pcu/test_attention_pair.py::test_a_pair_computes_attention[0.0]"
_PARTS = "tests/hw/matrix/test_softmax_parts.py::"
_GROUPS = "tests/hw/pcu/test_groups.py::test_column_passes_of_a_group_use_rows_one_after_another"

#: By what they are.
FAULTS = {
    "ties of the multiply-add unit are rounded up": Mutant(
        "hw/float/aligned_sum.py",
        "over_half | (half_or_more & kept[0])",
        "over_half | half_or_more",
        "tests/hw/pcu/test_lane_units.py::test_the_multiply_add_unit_equals_numpy",
    ),
    "the phases begin anew a packet early": Mutant(
        "hw/pcu/lane_issue.py",
        "Mux(coming + 1 == program.count, 0, coming + 1)",
        "Mux(coming + 2 == program.count, 0, coming + 1)",
        "tests/hw/pcu/test_lanes.py::test_softmax_in_four_phases_equals_the_functions_one_by_one",
    ),
    "a masked key counts for the maximum": Mutant(
        "hw/matrix/softmax/score_columns.py",
        "score.eq(Mux(self.i_hidden | nan, least, self.i_sum))",
        "score.eq(Mux(nan, least, self.i_sum))",
        _PARTS + "test_columns_keep_the_greatest_score_of_each_block",
    ),
    "m' - m does not saturate": Mutant(
        "hw/pcu/result_packer.py",
        "Mux(self.i_unsigned, each[:8] | each[8:].any().replicate(8), saturate_int8(each))",
        "Mux(self.i_unsigned, each[:8], saturate_int8(each))",
        _PAIR,
    ),
    "old sums are scaled on the second tile of a block, too": Mutant(
        "hw/matrix/softmax/rise_loader.py",
        "rises >> RISE_BITS)",
        "rises.rotate_right(RISE_BITS))",
        _PARTS + "test_rises_leave_the_stream_and_go_with_the_first_tile",
    ),
    "the row of ones is read last": Mutant(
        "hw/matrix/drain.py",
        "self.o_row.eq(Mux(requested == 0, self.i_last_row, before))",
        "self.o_row.eq(requested)",
        _PAIR,
    ),
    "the shift of a count is logical": Mutant(
        "hw/lib/loop_nest.py",
        "(sums[i] >> program[i].shift",
        "(sums[i].as_unsigned() >> program[i].shift",
        "tests/hw/lib/test_loop_nest.py::test_hardware_model_and_array_form_take_the_same_steps",
    ),
    "`final` begins a group one tile late": Mutant(
        "hw/pcu/unit.py",
        "m.d.sync += begins.eq(weight.payload.final |",
        "m.d.sync += (late := Signal()).eq(weight.payload.final)\n"
        "            m.d.sync += begins.eq(late |",
        _GROUPS,
    ),
    "sums wrap one tile early": Mutant(
        "hw/pcu/unit.py",
        "marked & ~begins)",
        "marked & ~begins & ~weight.payload.final)",
        _GROUPS,
    ),
    "a unit works by the phase that is issued": Mutant(
        "hw/pcu/overlapping_phases.py",
        "starts = {each.value: taps[unit_start(each, unit)] for each in UnitOrder}",
        "starts = {each.value: self.i_number for each in UnitOrder}",
        "tests/hw/pcu/test_lanes.py::test_random_programs_equal_numpy_under_random_stalls",
    ),
    "a third phase follows while two are in the lanes": Mutant(
        "hw/pcu/lane_issue.py",
        "leaving.eq(self._latency - 1)",
        "leaving.eq(2)",
        "tests/hw/pcu/test_lanes.py::test_random_programs_equal_numpy_under_random_stalls",
    ),
    "a pass enters a row before the drain has read it": Mutant(
        "hw/matrix/bank_sequencer.py",
        "(self.i_read_rows > self.i_row)",
        "(self.i_read_rows + 40 > self.i_row)",
        _PAIR,
    ),
    "the checksum of an image is ignored": Mutant(
        "hw/command/fetch.py",
        "self._checksum.o_value != self.o_entry.header.checksum",
        "Const(0)",
        "tests/hw/command/test_refusals.py::test_what_cannot_run_is_refused_and_nothing_starts",
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.must("unit-k", goal="thirteen faults planted in the vector side: each caught")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_by_its_test(fault, copy):
    require_killed(FAULTS[fault], copy)
