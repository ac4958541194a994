"""Function unit of a user: checked against its reference, and in a lane."""

import gc

import numpy as np
import pytest
from amaranth.hdl import Fragment, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arch.errors import BadInputError
from hw.arch.lanes.lane_function import LaneFunction
from hw.arch.lanes.phase_word import Operand, UnitOrder, phase_layout
from hw.numeric import functions
from hw.numeric.formats import fp32
from hw.numeric.function_codes import SpecialFunction
from hw.pcu.function_unit import check_function, function_unit
from hw.pcu.lane import Lane
from tests.function_units import ABSOLUTE, RELU6, Relu6Unit, made, relu6
from tests.hw.float.stimuli import arguments
from tests.slow_cases import quick_first


class OtherPorts(wiring.Component):
    """Unit with a port of another name."""

    i_x: In(32)
    o_result: Out(32)

    def elaborate(self, platform):
        return Module()


@pytest.mark.parametrize("function", [RELU6, ABSOLUTE], ids=lambda each: each.name)
def test_a_unit_equals_its_reference(function, seed):
    check_function(function, arguments(200, seed))


def test_a_wrong_unit_is_refused(seed):
    wrong = made("wrong", Relu6Unit, 2, np.abs)
    with pytest.raises(BadInputError, match=r"^Result of function unit wrong for 0x\w+ must be"):
        check_function(wrong, arguments(50, seed))
    late = made("late", Relu6Unit, 3, relu6)
    with pytest.raises(BadInputError, match=r"^Result of function unit late for 0x\w+ must be"):
        check_function(late, arguments(50, seed))


@pytest.mark.few(2)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: made("slow", Relu6Unit, 10, relu6), "from 0 to 9, not 10$"),
        (lambda: made("Relu 6", Relu6Unit, 2, relu6), "^Name of a function unit must be"),
        (lambda: function_unit("other", OtherPorts), "^Ports of function unit other must"),
    ],
    ids=["latency", "name", "ports"],
)
def test_bad_definitions_are_refused(function, message):
    with pytest.raises(BadInputError, match=message):
        function()
    gc.collect()


@pytest.mark.parametrize("reference", [np.sum, lambda x: x.astype(np.float64)])
def test_a_reference_keeps_shape_and_type(reference):
    function = LaneFunction("bad", Relu6Unit, 2, reference, "")
    with pytest.raises(BadInputError, match=r"must return float32 of shape \(4,\), not"):
        function.results(np.zeros(4, np.uint32))


@pytest.mark.parametrize("order", quick_first([UnitOrder.ALU_FMA_SFU, UnitOrder.FMA_ALU_SFU]))
def test_a_lane_computes_every_function(order, seed):
    units = (RELU6, ABSOLUTE)
    words = arguments(40, seed)
    x = fp32.from_bits(words)
    special = [fp32.bits_of(functions.special_function(each, x, 16)) for each in SpecialFunction]
    expected = special + [each.results(words) for each in units]
    for code, right in enumerate(expected):
        assert lane_results(Lane(16, units), order, code, words) == right.tolist()


def lane_results(lane, order, code, words):
    """Words of a lane's function of x, the last unit of the order."""
    found = []

    async def bench(context):
        context.set(lane.i_phase.order, order)
        context.set(lane.i_phase.function, code)
        context.set(lane.i_phase.argument, Operand.X.value)
        for cycle in range(len(words) + lane.latency):
            if cycle < len(words):
                context.set(lane.i_x, int(words[cycle]))
            if cycle >= lane.latency:
                found.append(context.get(lane.o_result))
            await context.tick()

    simulator = Simulator(lane)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


def test_names_of_lanes_and_phase_words():
    """A lane without function units keeps its name and its word; units change both."""
    lanes = [Lane(16), Lane(16, ()), Lane(16, (RELU6,)), Lane(16, (ABSOLUTE,))]
    names = [each.definition_name for each in lanes]
    for lane in lanes:
        Fragment.get(lane, None)
    assert names[0] == names[1] == "lane_f16"
    assert len(set(names)) == 3
    assert phase_layout(0).size == phase_layout().size
    assert [phase_layout(n).size - phase_layout().size for n in (1, 4)] == [1, 1]
