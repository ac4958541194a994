"""Output-stationary array: sums stay in the cells, activations pass right, weights pass down."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from hw.array.cell_config import CellConfig
from hw.array.dataflow import ArrayConfig
from hw.array.mac import multiply_add
from hw.array.operand import OperandRecoder
from hw.array.skew import skewed
from hw.emit.structure import Bits, Structural, Structure
from hw.lib.component import Component

__all__ = ["OutputArray", "OutputCell", "OutputRow"]


class OutputCell(Component):
    """Output-stationary MAC cell: L interleaved sums in an L-stage adder, and a drain register.

    A step at ``i_a``, ``i_b`` in cycle t adds its product to the sum of the step of cycle t - L;
    ``i_first`` makes it the first product of a sum. A step of cycle t with ``i_finish`` completes
    all L sums: they enter the drain chain, which must have room, in cycles t + 3 to t + 2 + L, the
    sum of that step last. In a cycle without a step the operands must be +0.

    Parameters
    ----------
    config : CellConfig

    Members
    -------
    i_a, i_first, i_finish, i_shift, i_b
        Operands of a step and its sideband flags; the drain chain shifts.
    o_a, o_first, o_finish, o_shift, o_b
        The same one cycle later, for the right and the lower neighbour.
    i_sum, o_sum
        Input of the drain chain from above, and its output.
    mode
        Static: 1 for int8 pairs; ignored by a cell of one kind of operand.
    """

    i_a: Signal
    i_first: Signal
    i_finish: Signal
    i_b: Signal
    o_a: Signal
    o_first: Signal
    o_finish: Signal
    o_b: Signal
    i_shift: Signal
    o_shift: Signal
    i_sum: Signal
    o_sum: Signal
    mode: Signal

    def __init__(self, config: CellConfig) -> None:
        self._config = config
        bits = config.operand_bits
        marks = {"a": bits, "first": 1, "finish": 1, "shift": 1, "b": bits}
        super().__init__(
            {f"i_{name}": In(width) for name, width in marks.items()}
            | {f"o_{name}": Out(width) for name, width in marks.items()}
            | {"i_sum": In(32), "o_sum": Out(32), "mode": In(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        latency = self._config.latency
        bits = self._config.operand_bits
        a, b = (Signal(bits, name=name, reset_less=True) for name in "ab")
        m.d.sync += [
            a.eq(self.i_a),
            b.eq(self.i_b),
            self.o_first.eq(self.i_first),
            self.o_finish.eq(self.i_finish),
            self.o_shift.eq(self.i_shift),
        ]
        m.d.comb += [self.o_a.eq(a), self.o_b.eq(b)]
        first = Signal()
        # The L sums leave the adder one per cycle, the first of them in the next cycle but one.
        finish = Signal(1 + latency)
        m.d.sync += [first.eq(self.o_first), finish.eq(Cat(self.o_finish, finish))]

        sum_ = Signal(32, reset_less=True)
        old = Signal(32)
        m.d.comb += old.eq(Mux(first, 0, sum_))
        mode = self.mode if self._config.has_mode else None
        total = multiply_add(m, self._config, a, b, old, mode=mode)
        m.d.sync += sum_.eq(total)

        drain = Signal(32 * latency, reset_less=True)
        comes = finish[1:].any()
        with m.If(comes | self.i_shift):
            enters = Mux(comes, sum_, self.i_sum)
            m.d.sync += drain.eq(Cat(enters, drain)[: len(drain)])
        m.d.comb += self.o_sum.eq(drain[-32:])
        return m


class OutputRow(Structural):
    """One row of output-stationary cells.

    Parameters
    ----------
    config : ArrayConfig

    Members
    -------
    i_a, i_first, i_finish, i_shift
        Operand of column 0, 16 bits, its flags, and the shift of the drain chain; column c
        receives them c cycles later.
    i_b, o_b
        Recoded operands from above, and one cycle later to below.
    i_sums, o_sums
        Drain chains from above and to below.
    mode
        Static: 1 for int8 pairs; ignored by cells of one kind of operand.
    """

    i_a: Signal
    i_first: Signal
    i_finish: Signal
    i_b: Signal
    o_b: Signal
    i_shift: Signal
    i_sums: Signal
    o_sums: Signal
    mode: Signal

    def __init__(self, config: ArrayConfig) -> None:
        self._config = config
        operands = config.cell.operand_bits * config.columns
        sums = 32 * config.columns
        super().__init__(
            {
                "i_a": In(config.lane_bits),
                "i_first": In(1),
                "i_finish": In(1),
                "i_b": In(operands),
                "o_b": Out(operands),
                "i_shift": In(1),
                "i_sums": In(sums),
                "o_sums": Out(sums),
                "mode": In(1),
            }
        )

    def structure(self) -> Structure:
        structure = Structure(self)
        config = self._config
        bits = config.cell.operand_bits
        mode = structure.port("mode")
        a = structure.wire("operand", bits)
        structure.instance(
            "edge",
            OperandRecoder(formats=config.formats),
            i_bits=structure.port("i_a"),
            mode=mode,
            o_operand=a,
        )
        first, finish = structure.port("i_first"), structure.port("i_finish")
        shift = structure.port("i_shift")
        down = structure.wire("down", bits * config.columns)
        leaving = structure.wire("leaving", 32 * config.columns)
        structure.output("o_b", down)
        structure.output("o_sums", leaving)
        for column in range(config.columns):
            right = structure.wire(f"operand_{column}", bits)
            first_right = structure.wire(f"first_{column}", 1)
            finish_right = structure.wire(f"finish_{column}", 1)
            shift_right = structure.wire(f"shift_{column}", 1)
            operand = slice(bits * column, bits * (column + 1))
            sum_ = slice(32 * column, 32 * (column + 1))
            structure.instance(
                f"cell_{column}",
                OutputCell(config.cell),
                i_a=a,
                i_first=first,
                i_finish=finish,
                o_a=right,
                o_first=first_right,
                o_finish=finish_right,
                i_shift=shift,
                o_shift=shift_right,
                i_b=structure.port("i_b")[operand],
                o_b=down[operand],
                i_sum=structure.port("i_sums")[sum_],
                o_sum=leaving[sum_],
                mode=mode,
            )
            a, first, finish, shift = right, first_right, finish_right, shift_right
        return structure


class OutputArray(Structural):
    """Output-stationary array of R × C cells with L sums each; lane 0 feeds the lowest row.

    It never stalls: in a cycle without a step it gets operands of +0. With skew, the L sums that a
    step of cycle t with ``i_finish`` completes enter the drain of lane i, column c, in the L cycles
    from ``t + 3 + (R - 1 - i) + c`` on. The drain chain of a column delivers lane 0 first, and of
    each lane the L sums in the order of their steps.

    Parameters
    ----------
    config : ArrayConfig
    skewed : bool
        Whether the array skews its inputs itself: activations and flags by one cycle per row,
        weights by one cycle per column. Else its neighbour does, and a flag has a bit per row.

    Members
    -------
    i_a, i_first, i_finish
        Vector of R activations of 16 bits, and the flags of its step.
    i_b
        Vector of C weights of 16 bits.
    i_shift, o_sums
        Rows whose drain registers shift, bit 0 the highest, column c after c cycles; the sum at
        the end of each column's drain chain.
    a_mode, b_mode
        Static: format of each operand, as :class:`hw.array.operand.OperandRecoder` says.
    """

    i_a: Signal
    i_first: Signal
    i_finish: Signal
    i_b: Signal
    i_shift: Signal
    o_sums: data.View[data.ArrayLayout]
    a_mode: Signal
    b_mode: Signal

    def __init__(self, config: ArrayConfig, *, skewed: bool = True) -> None:
        self._config = config
        self._skewed = skewed
        marks = 1 if skewed else config.rows
        super().__init__(
            {
                "i_a": In(config.lane_bits * config.rows),
                "i_first": In(marks),
                "i_finish": In(marks),
                "i_b": In(config.lane_bits * config.columns),
                "i_shift": In(config.rows),
                "o_sums": Out(data.ArrayLayout(32, config.columns)),
                "a_mode": In(1),
                "b_mode": In(1),
            }
        )

    def structure(self) -> Structure:
        structure = Structure(self)
        config = self._config
        bits = config.cell.operand_bits
        lanes = structure.port("i_b")
        down = structure.wire("weights", bits * config.columns)
        for column in range(config.columns):
            structure.instance(
                f"recode_{column}",
                OperandRecoder(formats=config.formats),
                i_bits=lanes[: config.lane_bits],
                mode=structure.port("b_mode"),
                o_operand=down[bits * column : bits * (column + 1)],
            )
            lanes = lanes[config.lane_bits :]
            if self._skewed and column < config.columns - 1:
                lanes = skewed(structure, f"b_{column}", lanes, 1)
        # Rows from the top: the lanes from the last to the first, one more cycle of skew per row.
        lanes = structure.port("i_a")
        first, finish = structure.port("i_first"), structure.port("i_finish")
        sums = Bits.zeros(32 * config.columns)
        for index in range(config.rows):
            below = structure.wire(f"sums_{index}", 32 * config.columns)
            further = structure.wire(f"weights_{index}", bits * config.columns)
            top = len(lanes) - config.lane_bits
            structure.instance(
                f"row_{index}",
                OutputRow(config),
                i_a=lanes[top:],
                i_first=first[:1],
                i_finish=finish[:1],
                i_b=down,
                o_b=further,
                i_shift=structure.port("i_shift")[index : index + 1],
                i_sums=sums,
                o_sums=below,
                mode=structure.port("a_mode"),
            )
            lanes, down, sums = lanes[:top], further, below
            if not self._skewed:
                first, finish = first[1:], finish[1:]
            elif index < config.rows - 1:
                lanes = skewed(structure, f"a_{index}", lanes, 1)
                first = skewed(structure, f"first_{index}", first, 1)
                finish = skewed(structure, f"finish_{index}", finish, 1)
        structure.output("o_sums", sums)
        return structure
