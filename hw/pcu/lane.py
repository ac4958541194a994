"""Lane of a PCU: multiply-add, ALU and special function unit in an order of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.arch.lanes.lane_function import FUNCTION_LATENCY, LaneFunction, function_codes
from hw.arch.lanes.phase_word import CONSTANTS, FIXED_WORDS, Operand, UnitOrder, phase_layout
from hw.float.special_function_unit import SpecialFunctionUnit
from hw.float.wires import named
from hw.lib.component import Component
from hw.lib.delay import delayed
from hw.lib.delay_memory import DelayMemory
from hw.lib.mux_tree import chosen, chosen_narrowly
from hw.pcu.arithmetic_logic import ArithmeticLogicUnit
from hw.pcu.function_unit import function_unit
from hw.pcu.multiply_add import FusedMultiplyAdd

__all__ = ["Lane", "constant_layout", "operand_constants", "unit_start"]

_CYCLES: Mapping[str, int] = {
    "fma": FusedMultiplyAdd.latency,
    "alu": ArithmeticLogicUnit.latency,
    "sfu": SpecialFunctionUnit.latency,
}
# Every result of a function unit can be delayed to that of the special function unit.
assert FUNCTION_LATENCY.high == SpecialFunctionUnit.latency
_CONSTANT = ("fma_b", "fma_c", "alu_a", "alu_b", "alu_c", "alu_d")
_ELEMENT = (Operand.X, Operand.Y, Operand.Z)


def constant_layout() -> data.StructLayout:
    """Layout of the constants of the operands that may be one."""
    return data.StructLayout(dict.fromkeys(_CONSTANT, 32))


def operand_constants(
    phase: data.View[data.StructLayout], constants: data.View[data.ArrayLayout]
) -> dict[str, Value]:
    """Constant of each operand of a phase, from those of the program, the same for all lanes."""
    words: dict[int, Value] = {each.value: Const(word, 32) for each, word in FIXED_WORDS.items()}
    for number in range(CONSTANTS):
        words[Operand.CONSTANT_0.value + number] = constants[number]
    return {name: chosen(Value.cast(phase[name]), words) for name in _CONSTANT}


def unit_start(order: UnitOrder, unit: str) -> int:
    """Cycles from an element's words to the unit's operands."""
    before = order.times[: order.times.index(unit)]
    return sum(_CYCLES[each] for each in before)


class Lane(Component):
    """Datapath for one element per cycle, in the static order of a phase; it never stalls.

    An element passes all three units, whether their results are used or not, and its result comes
    `latency` cycles after its words. Bit-identical to :class:`hw.numeric.lane_model.LaneModel`.

    Parameters
    ----------
    function_bits : int
        Significand bits of the functions (`limits.FUNCTION_BITS`).
    functions : tuple of LaneFunction
        Function units beside the special function unit; their codes follow its codes.

    Members
    -------
    i_phase : ``In(phase_layout(len(functions)))``
        Operations and operands of the units, with the operands; the order changes only among those
        of the same times while elements are in the lane.
    i_constants : ``In(constant_layout())``
        Constant that each operand is if its code is above `PREVIOUS`.
    i_x, i_y, i_z : ``In(32)``
        Words of an element.
    o_result : ``Out(32)``

    Raises
    ------
    BadInputError
        Two function units have the same name.
    """

    #: Cycles from an element's words to its result.
    latency: Final = sum(_CYCLES.values()) + 1

    i_phase: data.View[data.StructLayout]
    i_constants: data.View[data.StructLayout]
    i_x: Signal
    i_y: Signal
    i_z: Signal
    o_result: Signal

    def __init__(self, function_bits: int, functions: tuple[LaneFunction, ...] = ()) -> None:
        self._codes = function_codes(functions)
        self._function_bits = function_bits
        self._functions = functions
        super().__init__(
            {
                "i_phase": In(phase_layout(len(self._functions))),
                "i_constants": In(constant_layout()),
                "i_x": In(32),
                "i_y": In(32),
                "i_z": In(32),
                "o_result": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase: Any = self.i_phase
        units: dict[str, Any] = {
            "fma": FusedMultiplyAdd(),
            "alu": ArithmeticLogicUnit(),
            "sfu": SpecialFunctionUnit(self._function_bits),
        }
        results = {name: unit.o_result for name, unit in units.items()}
        results["sfu"] = self._function(m, units["sfu"])
        places = self._places(m)
        late = self._late_product(m, results["fma"])
        words = {name: self._words(m, name, places, results, late) for name in units}
        fma, alu, sfu = units["fma"], units["alu"], units["sfu"]
        for name, unit in units.items():
            m.submodules[name] = unit
        m.d.comb += [
            fma.i_a.eq(_by_code(Value.cast(phase.fma_a), words["fma"])),
            fma.i_negate_product.eq(phase.negate_product),
            fma.i_negate_addend.eq(phase.negate_addend),
            alu.i_operation.eq(phase.alu),
            sfu.i_operation.eq(phase.function),
            sfu.i_argument.eq(_by_code(Value.cast(phase.argument), words["sfu"])),
        ]
        constants: Any = self.i_constants
        for operand in constant_layout().members:
            name, letter = operand.split("_")
            code = Value.cast(phase[operand])
            word = Mux(code[2:].any(), constants[operand], _by_code(code[:2], words[name]))
            m.d.comb += getattr(units[name], f"i_{letter}").eq(named(m, operand, word))
        last = {order: results[order.units[-1]] for order in UnitOrder}
        result = _by_code(Value.cast(phase.order), last)
        m.d.comb += self.o_result.eq(delayed(m, result, 1, name="result"))
        return m

    def _places(self, m: Module) -> list[dict[Operand, Value]]:
        """Words of the element that reaches the first, the second and the third unit."""
        phase: Any = self.i_phase
        words = Cat(self.i_x, self.i_y, self.i_z)
        places: list[Value] = [words]
        for number, place in ((1, "second"), (2, "third")):
            starts = {order: unit_start(order, order.times[number]) for order in UnitOrder}
            known = {cycles: Const(cycles) for cycles in starts.values()}
            delay = DelayMemory(width=len(words), most=max(known))
            m.submodules[f"{place}_words"] = delay
            cycles = {order: known[start] for order, start in starts.items()}
            m.d.comb += [
                delay.i_data.eq(words),
                delay.i_cycles.eq(_by_code(Value.cast(phase.order), cycles)),
            ]
            places.append(delay.o_data)
        return [
            {each: word[32 * n : 32 * n + 32] for n, each in enumerate(_ELEMENT)} for word in places
        ]

    def _function(self, m: Module, sfu: Any) -> Value:
        """Result of the function of the phase, as late as that of the special function unit."""
        result: Value = sfu.o_result
        if not self._functions:
            return result
        phase: Any = self.i_phase
        code = delayed(m, phase.function, sfu.latency, name="function_code")
        for function in self._functions:
            unit = function_unit(function.name, function.unit)
            m.submodules[f"function_{function.name}"] = unit
            m.d.comb += unit.i_argument.eq(sfu.i_argument)
            waits = sfu.latency - function.latency
            word = delayed(m, unit.o_result, waits, name=f"{function.name}_result")
            result = Mux(code == self._codes[function], word, result)
        return named(m, "function_result", result)

    def _late_product(self, m: Module, result: Value) -> Value:
        """Result of the multiply-add as long after it as a function takes."""
        delay = DelayMemory(width=len(result), most=_CYCLES["sfu"])
        m.submodules.late_product = delay
        m.d.comb += [delay.i_data.eq(result), delay.i_cycles.eq(_CYCLES["sfu"])]
        return delay.o_data

    def _words(
        self,
        m: Module,
        unit: str,
        places: list[dict[Operand, Value]],
        results: Mapping[str, Value],
        late: Value,
    ) -> dict[Operand, Value]:
        """Words of the element that reaches a unit, and the result before it."""
        phase: Any = self.i_phase
        words: dict[Operand, Value] = {}
        for operand in _ELEMENT:
            there = {order: places[order.times.index(unit)][operand] for order in UnitOrder}
            word = _by_code(Value.cast(phase.order), there)
            words[operand] = named(m, f"{unit}_{operand.name.lower()}", word)
        before = {
            order: results[order.times[order.times.index(unit) - 1]]
            for order in UnitOrder
            if order.times[0] != unit
        }
        if unit == "alu":
            before[UnitOrder.FMA_ALU_LATE] = late
        previous = _by_code(Value.cast(phase.order), before)
        words[Operand.PREVIOUS] = named(m, f"{unit}_previous", previous)
        return words


def _by_code(code: Value, words: Mapping[Any, Value]) -> Value:
    """Word whose key has the code."""
    return chosen_narrowly(code, {key.value: each for key, each in words.items()})
